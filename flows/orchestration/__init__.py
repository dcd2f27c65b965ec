"""What the Prefect flows share."""
