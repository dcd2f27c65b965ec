"""The commands of `aucdist`, a module for each.

What takes long to load is imported inside the functions, so that `--help` is quick.
"""
