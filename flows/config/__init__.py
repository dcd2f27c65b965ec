"""Configuration models that several use cases share, and how configuration files are read."""
