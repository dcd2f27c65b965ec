"""Prints the reference of all configurations, a table for each of the models that check them."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from flows.cv.config import CvConfig
from flows.score.config import ScoreConfig
from flows.shard.config import ShardConfig
from flows.train.config import TrainConfig

TOP: dict[type[BaseModel], str] = {
    TrainConfig: "`aucdist train` and the flow `train-auc`; files in `configs/train`.",
    CvConfig: "`aucdist cv` and the flow `cross-validate`; files in `configs/cv`.",
    ShardConfig: "The flow `shard-data`; `aucdist shard` makes one of its arguments.",
    ScoreConfig: "The flow `score`; `aucdist score` makes one of its arguments.",
}
WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "any value", dict: "mapping"}
BOUNDS = {"ge": "at least {}", "gt": "above {}", "le": "at most {}", "lt": "below {}", "min_length": "at least {} long"}

INTRO = """\
# Configuration

Generated from the models in `flows/train/config.py` and its neighbours, which check every configuration before any work
starts: a key that is not listed here is refused, with the nearest one that is. Files are YAML; `--set key.sub=value`
changes one key, and its value is YAML too. In place of the keys of a `cluster` the name of a file in `configs/cluster`
may stand, or its path. `model` takes, beyond the keys below, every parameter of the estimator it names.
"""


def main() -> None:
    """Print the page."""
    print(INTRO)
    models = reachable(list(TOP))
    for model in models:
        print(f"## {model.__name__}\n\n{TOP.get(model, '')} {sentences(model)}\n")
        print("| key | value | default | |\n|---|---|---|---|")
        for name, field in model.model_fields.items():
            cells = (
                f"`{name}`",
                spelled(field.annotation, models) + bounds(field),
                default(field),
                field.description or "",
            )
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        print()


def sentences(model: type[BaseModel]) -> str:
    """Return what a model says of itself."""
    return (model.__doc__ or "").strip()


def reachable(models: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """Return the models and those of their fields, each once."""
    found = list(models)
    for model in found:  # grows
        for field in model.model_fields.values():
            found += [inner for inner in dict.fromkeys(models_in(field.annotation)) if inner not in found]
    return found


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def spelled(annotation: Any, models: list[type[BaseModel]]) -> str:
    """Return a type in words; models are links to their tables."""
    if annotation in models:
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return spelled(parts[0], models)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(spelled(part, models) for part in parts if part is not type(None))
    if origin is list:
        return f"list of {spelled(parts[0], models)}"
    if origin is tuple:
        return "[" + ", ".join(spelled(part, models) for part in parts) + "]"
    if origin is dict:
        return f"mapping of {spelled(parts[0], models)} to {spelled(parts[1], models)}"
    return WORDS[annotation]


def bounds(field: FieldInfo) -> str:
    """Return the limits of a value."""
    told = [words.format(f"{value:g}") for part in field.metadata for key, words in BOUNDS.items()
            if (value := getattr(part, key, None)) is not None]  # fmt: skip
    return f", {' and '.join(told)}" if told else ""


def default(field: FieldInfo) -> str:
    """Return what stands where nothing is given."""
    if field.is_required():
        return "*needed*"
    value = field.default
    if value is PydanticUndefined or value is None or value in ([], {}, ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    main()
