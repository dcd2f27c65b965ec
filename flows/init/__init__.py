"""The command `init`: look at a data file, and write a configuration for it."""
