"""What runs the work of a command: clusters and their workers, the environment of S3, the stages of a run, and cached results."""
