"""Building FollowIR-style datasets: from a judged collection to pairs of instructions on the same query."""
