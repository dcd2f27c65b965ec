"""Sharded data sets, which are files of blocks with a manifest: how they are written, and how blocks are read."""
