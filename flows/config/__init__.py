"""Configuration models that several commands share, and the reading of configuration files."""
