"""Whether new rows are like the training rows: profiles of the rows that a model was fitted to, and tests against them."""
