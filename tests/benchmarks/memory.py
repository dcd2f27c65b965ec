"""The peak memory of a process."""

import resource
import sys
from pathlib import Path


def peak_memory() -> float:
    """Return the peak memory of this process, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would include the memory of the parent at the start of this process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)
