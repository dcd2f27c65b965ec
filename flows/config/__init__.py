"""Configuration models that several use cases share, and the reading of configuration files."""
