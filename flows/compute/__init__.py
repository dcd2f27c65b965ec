"""Run the work: clusters and their workers, the environment of S3, stages of a run, and cached results."""
