"""The command `cv`: choose parameters by cross-validation, and fit the chosen model."""
