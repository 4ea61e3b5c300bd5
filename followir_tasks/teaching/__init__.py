"""Teaching rerankers and encoders to follow instructions (FollowIR, section 5)."""
