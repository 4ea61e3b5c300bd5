"""Downstream question answering (TCR-Bench, sections 4.2 and D.4): what a reader makes of the tables found."""
