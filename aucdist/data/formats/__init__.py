"""The formats of data files: how each is split into parts, parsed and encoded."""
