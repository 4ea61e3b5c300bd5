"""FollowIR's ablations: forms of instructions, whole collections, keywords in place of instructions."""
