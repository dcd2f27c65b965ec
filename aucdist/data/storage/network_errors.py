"""The exceptions of S3 and web clients, by name: a client that was never imported has raised none, so it need not be loaded."""

import sys

BOTO, AIOHTTP = "botocore.exceptions", "aiohttp"

Exceptions = tuple[type[BaseException], ...]


def loaded(module: str, *names: str) -> Exceptions:
    """Return exception classes of a module for an ``except`` clause; none where the module has not been imported."""
    found = sys.modules.get(module)
    return () if found is None else tuple(getattr(found, name) for name in names)
