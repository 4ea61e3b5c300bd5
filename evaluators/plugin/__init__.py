"""What ties the metrics to mteb: tasks, registration, data sources, checks, the command line."""
