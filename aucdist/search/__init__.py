"""Choosing parameters by cross-validation: grids, folds on blocks anywhere, and the choice."""
