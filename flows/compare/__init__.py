"""Use case: compare the models of several runs on the same test rows."""
