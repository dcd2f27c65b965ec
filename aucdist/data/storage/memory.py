"""The memory of this machine: what is certain to be larger is refused before it is read."""

import os

from aucdist.errors import InputError


def total_memory() -> int:
    """Return the bytes of physical memory; a very large number where the system does not state them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**62


def check_fits(n_bytes: int, what: str) -> None:
    """Do nothing if so many bytes fit into the memory of this machine.

    Raises InputError if they do not; `what` names the file or data set.
    """
    if n_bytes > (most := total_memory()):
        raise InputError(f"{what}: {n_bytes} bytes would be needed, more than this machine's memory of {most}")
