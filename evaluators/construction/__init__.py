"""Building a dataset in stages: a working directory that resumes, and sheets that people fill in."""
