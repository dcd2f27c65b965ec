"""Wiring of the library into flows and the command `aucdist`: parameters, stages, progress, run folders."""
