"""What the IFIR sample is made from: vocabularies (JSON, one file per domain) and the code that turns them to prose."""
