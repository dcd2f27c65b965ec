"""Use case: one page of evidence about a run, and its repetition."""
