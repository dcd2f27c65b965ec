"""Convert values to types of JSON."""

import json
from typing import Any

from pydantic_core import to_jsonable_python

from aucdist.errors import Json


def jsonable(value: Any) -> Any:
    """Return a value as a JSON value. Numbers that are not finite become null."""
    # values that pydantic does not know are NumPy scalars
    return to_jsonable_python(value, inf_nan_mode="null", fallback=lambda scalar: scalar.item())


def json_text(value: Any) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(jsonable(value), indent=2, allow_nan=False) + "\n"


def flattened(content: Json) -> Json:
    """Flatten nested mappings: the key of each value is its path, such as ``model.lam``."""
    flat: Json = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": below for key, below in flattened(value).items()}
        else:
            flat[str(name)] = value
    return flat
