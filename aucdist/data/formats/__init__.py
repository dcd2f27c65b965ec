"""The formats of data files: how a file of each format is split into parts, parsed and encoded."""
