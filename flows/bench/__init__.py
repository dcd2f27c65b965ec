"""`aucdist bench`: our figures beside the peers', side by side on this machine. The suites are listed in `suites`."""
