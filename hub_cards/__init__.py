"""Dataset cards and what is published."""
