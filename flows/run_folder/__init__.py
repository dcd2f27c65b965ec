"""The run folder: the files that a training run or a search writes, and how other commands read them."""
