"""What objectives share: the Gaussian kernel, link functions, and maps from scores to probabilities."""
