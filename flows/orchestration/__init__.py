"""What the Prefect flows share: the decorator, stages as tasks, artifacts."""
