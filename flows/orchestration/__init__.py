"""The Prefect flows of all commands that have one."""
