"""Run functions on the blocks of a data set, in this process or on a cluster: `blocks.reduce`."""
