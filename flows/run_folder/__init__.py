"""The run folder: what a training run or a search writes, and what others read of it."""
