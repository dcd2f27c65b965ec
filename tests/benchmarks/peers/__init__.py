"""The suite `peers`. The modules that contestants' processes import (`contestant`, `system`, `linear`, `others`) load quickly."""
