"""Why does a retriever miss the table that answers? TCR-Bench's diagnostics, on any TCR dataset."""
