"""Causal language models as rerankers: the probability that the answer to a prompt is "true" and not "false"."""
