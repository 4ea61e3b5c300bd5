"""Reports on FollowIR results beside the paper's published values."""
