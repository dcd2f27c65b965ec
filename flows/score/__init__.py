"""Use case: score the rows of a data set with a trained model."""
