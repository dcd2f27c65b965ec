"""The configuration reference: a table of keys for each configuration of a command, and for the models in it.

After a change of keys or of their descriptions: python docs/configuration.py > docs/pages/reference/configuration.md
"""

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from flows.cli import COMMANDS
from flows.command import Command

WORDS = {
    str: "text",
    Path: "text",
    int: "integer",
    type(None): "null",
    float: "number",
    bool: "true or false",
    Any: "any value",
    dict: "mapping",
}
LIMITS = {"ge": "at least {}", "gt": "above {}", "le": "at most {}", "lt": "below {}", "min_length": "at least {} long"}

INTRO = """\
# Configuration

A configuration is a YAML file for one command. `--set key.sub=value` changes one key on the command line, and its value is
YAML too. Each command checks its whole configuration before any work starts. A key that is not listed here is an error, and
the message names the nearest key that exists.

This page is generated from the code. The first sections are about the commands, each with an example, and the later ones
about the mappings that they contain. `cluster` is one of the mappings below, or the name or path of a file in
`configs/cluster`. `model` accepts, beyond the keys below, every parameter of [the estimator](estimators.md) that it names.
"""
EXAMPLES = {
    "init": "aucdist init clicks.csv --label clicked",
    "train": """\
name: clicks
data:
  source: {source: clicks.csv, format: csv, label: clicked}
  test: {fraction: 0.2, seed: 0}
  scale: standard
model: {estimator: PairwiseHingeClassifier, lam: 1e-3}
operating_point: {fpr: 0.01}
cluster: {kind: local, workers: 2}
blocks: 4
checkpoint: {seconds: 60}
""",
    "cv": """\
name: clicks
data:
  source: {source: clicks.csv, format: csv, label: clicked}
  test: {fraction: 0.2, seed: 0}
  scale: standard
model: {estimator: PairwiseHingeClassifier}
grid: {lam: {first: 1, last: 1e-4, number: 9}}
folds: {number: 5, repeats: 3}
metric: partial_auc
max_fpr: 0.05
""",
    "compare": "aucdist compare runs/clicks-1 runs/clicks-2 --max-fpr 0.05",
    "threshold": "aucdist threshold runs/clicks-1 --alerts 50 --per day --confidence 0.95",
    "promote": "aucdist promote runs/clicks-1 models/clicks --if better",
    "rollback": "aucdist rollback models/clicks",
    "models": "aucdist models models/clicks",
    "reproduce": "aucdist reproduce 000 --quick",
    "shard": "aucdist shard clicks.yaml s3://bucket/clicks --rows-per-shard 1000000",
    "score": "aucdist score runs/clicks-1 clicks-new.csv scores --contributions",
    "watch": "aucdist watch models/clicks clicks-new.csv --labels labels.csv",
    "keep-current": """\
store: models/clicks
condition: not-worse
keep: 10
window: 28
held_out: 1
train:
  name: clicks
  data: {source: {source: "s3://bucket/clicks/*.parquet", format: parquet, label: clicked}}
  model: {estimator: PairwiseHingeClassifier, lam: 1e-3}
new: {source: {source: clicks-new.parquet, format: parquet}}
""",
    "explain": "aucdist explain runs/clicks-1 clicks-new.csv --rows 3 --reasons 4",
    "audit": "aucdist audit runs/clicks-1 --lock requirements.lock",
    "export": "aucdist export runs/clicks-1 --to onnx --output clicks.onnx",
    "simulate": "aucdist simulate shards --rows 1000000 --features 20",
    "up": "aucdist up --port 4200",
    "data list": "aucdist data list",
    "data show": "aucdist data show a9a",
    "data fetch": "aucdist data fetch a9a kddcup99",
    "data preview": "aucdist data preview clicks.yaml --html clicks.html",
    "data verify": "aucdist data verify a9a",
}
"""A configuration, or a line of a shell, for each command; tests/flows/test_commands.py checks that they are valid."""


def print_reference() -> None:
    """Print the page."""
    print(INTRO)
    top = {model_of(command): command for command in COMMANDS}
    models = reachable(list(top))
    for model in models:
        print(f"## {title(model)}\n")
        if model in top:
            example = EXAMPLES[top[model].name].strip()
            language = "bash" if example.startswith("aucdist ") else "yaml"
            print(f"```{language}\n{example}\n```\n\n{use_of(top[model])} ", end="")
        print(f"{description(model)}\n")
        if model.model_fields:
            print("| key | value | default | meaning |\n|---|---|---|---|")
        for name, field in model.model_fields.items():
            cells = (
                f"`{name}`",
                type_text(field.annotation, models) + limits_of(field),
                default(field),
                " ".join((field.description or "").split()),
            )
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        print()


def title(model: type[BaseModel]) -> str:
    """Return the heading of a model: its command, or what it describes in words."""
    command = next((command for command in COMMANDS if model_of(command) is model), None)
    if command:
        return f"aucdist {command.name}"
    words = re.findall(r"[A-Z][a-z]*\d?", model.__name__.removesuffix("Config").removesuffix("Options"))
    return " ".join(words).capitalize().replace("Tls", "TLS")


def model_of(command: Command) -> type[BaseModel]:
    """Return the model of a command: of one that reads a file, that of the file."""
    model: type[BaseModel] = resolve_name(command.model)
    return getattr(model, "config_class", model)


def use_of(command: Command) -> str:
    """Return a sentence on where the configuration of a command comes from."""
    flow = command.flow.rpartition(":")[2].replace("_", "-")
    and_flow = f" and the flow `{flow}`" if flow else ""
    if hasattr(resolve_name(command.model), "config_class"):
        return f"The files of `aucdist {command.name}`{and_flow}, in `configs/{resolve_name(command.model).folder}`."
    return f"The options of `aucdist {command.name}`{and_flow}."


def description(model: type[BaseModel]) -> str:
    """Return the docstring of a model."""
    return inspect.cleandoc(model.__doc__ or "")


def reachable(models: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """Return models and the models of their fields, each once."""
    reached = list(models)
    for model in reached:  # grows
        for field in model.model_fields.values():
            reached += [inner for inner in dict.fromkeys(models_in(field.annotation)) if inner not in reached]
    return reached


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def type_text(annotation: Any, models: list[type[BaseModel]]) -> str:
    """Return a type as text; models are links to their tables."""
    if annotation in models:
        name = title(annotation)
        return f"[{name}](#{name.lower().replace(' ', '-')})"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(parts[0], models)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(part, models) for part in parts if part is not type(None))
    if origin is list:
        return f"list of {type_text(parts[0], models)}"
    if origin is tuple:
        return "[" + ", ".join(type_text(part, models) for part in parts) + "]"
    if origin is dict:
        return f"mapping of {type_text(parts[0], models)} to {type_text(parts[1], models)}"
    return WORDS[annotation]


def limits_of(field: FieldInfo) -> str:
    """Return the limits of a value, as text."""
    limits = [words.format(f"{value:g}") for part in field.metadata for key, words in LIMITS.items()
            if (value := getattr(part, key, None)) is not None]  # fmt: skip
    return f", {' and '.join(limits)}" if limits else ""


def default(field: FieldInfo) -> str:
    """Return the default of a field, in Markdown."""
    if field.is_required():
        return "*required*"
    value = field.default
    if value is PydanticUndefined or value is None or value in ([], {}, ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    print_reference()
