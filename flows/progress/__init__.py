"""How a run reports its progress: on a terminal, as JSON lines, and as metrics of the cluster."""
