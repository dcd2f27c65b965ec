"""Cross-validation: what a search is told, its tasks and where they run, its results, and its flow."""
