"""Tables of cases that lie in a YAML file beside their test."""

from pathlib import Path
from typing import Any

import yaml


def table_beside(test: str) -> Any:
    """Return the content of the YAML file that has the name of a test file and lies beside it."""
    return yaml.safe_load(Path(test).with_suffix(".yaml").read_text(encoding="utf-8"))
