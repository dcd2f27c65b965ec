"""Use case: change the threshold of a trained model without a fit."""
