"""The command `aucdist` and its Prefect flows: configurations, stages, progress and run folders."""
