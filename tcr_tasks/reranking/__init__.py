"""Answerability-aware reranking of a first stage's best tables (TCR-Bench, section 6 and appendix K)."""
