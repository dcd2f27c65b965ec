"""Where the work is done: clusters, Kubernetes, the environment of S3, and rows that workers read."""
