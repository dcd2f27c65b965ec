"""Use case: start a Prefect server with the deployments of aucdist."""
