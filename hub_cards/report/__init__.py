"""The results page: from mteb's result files to one HTML file, Markdown or CSV."""
