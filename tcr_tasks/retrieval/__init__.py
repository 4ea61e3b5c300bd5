"""TCR-Bench's other first stages (appendices D.2, D.3 and J) as mteb models that wrap mteb models."""
