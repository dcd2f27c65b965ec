"""Use case: say what each feature adds to the scores of rows."""
