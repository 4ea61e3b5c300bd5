"""The metrics: pure functions of runs and judgements. No model, no task, no file."""
