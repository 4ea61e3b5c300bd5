"""Training retrievers and rerankers to tell the table that answers from its siblings (TCR-Bench, section 6 and L)."""
