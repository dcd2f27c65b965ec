"""Choose parameters by cross-validation: grids, folds of blocks anywhere, and the choice."""
