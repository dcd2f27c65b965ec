"""Link functions, and maps from scores to probabilities."""
