"""Builds a benchmark in the manner of TCR-Bench (appendix A of the paper) from anyone's tables."""
