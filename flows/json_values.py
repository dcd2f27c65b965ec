"""Values as JSON has them."""

import hashlib
import json
import math
from typing import Any

import numpy as np


def jsonable(value: Any) -> Any:
    """Return a value in types of JSON; a number that is not finite becomes null, which is what JSON has for it."""
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(value: Any) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(jsonable(value), indent=2, allow_nan=False) + "\n"


def json_digest(value: Any) -> str:
    """Return the SHA-256 of a value in types of JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
