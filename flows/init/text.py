"""The YAML that `aucdist init` writes: a configuration with comments."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from aucdist.errors import Json

MOST_COMMENT = 90
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
WORDS = {"y", "n", "yes", "no", "true", "false", "on", "off", "null", "nan", "inf"}
"""What YAML, of one version or another, reads as something else than a text."""


def quoted(text: str) -> str:
    """Return a text as YAML reads it back, with quotes where they are needed."""
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))).rstrip("\n")


def flow(value: Any) -> str:
    """Return a value in types of JSON as YAML in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    return quoted(value) if isinstance(value, str) else str(yaml.safe_dump(value)).partition("\n")[0]


def comment(text: str) -> str:
    """Return a text as a comment of one line."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
    return "# " + (printable if len(printable) <= MOST_COMMENT else printable[: MOST_COMMENT - 3] + "...")


def yaml_text(
    name: str, head: Sequence[str], source: Json, comments: Json, data: Sequence[str],
    model: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return a configuration for training.

    `name`: of the data, from which the name of the run is made.
    `head`: comments at its top.
    `source`: the keys of the source.
    `comments`: for keys of the source a comment, or for each entry of a key one; those of no key follow all keys.
    `data`: lines below `data`; `model`: lines behind the model.
    """
    run_name = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).lstrip("._+-") or "data"
    lines = [*map(comment, head), f"name: {quoted(run_name)}", "data:", "  source:"]
    for key, value in source.items():
        why = comments.get(key, "")
        if isinstance(why, Mapping) and value:
            entries = value.items() if isinstance(value, Mapping) else [(entry, None) for entry in value]
            lines.append(f"    {key}:")
            for entry, of_entry in entries:
                text = f"- {flow(entry)}" if of_entry is None else f"{flow(entry)}: {flow(of_entry)}"
                lines.append(f"      {text}" + (f"  {comment(why[entry])}" if entry in why else ""))
        else:
            lines.append(f"    {key}: {flow(value)}" + (f"  {comment(why)}" if why else ""))
    lines += [f"    {comment(text)}" for text in comments.get("", ())]
    lines += [f"  {line}" for line in data]
    lines += ["model: {estimator: PairwiseHingeClassifier, lam: 1e-3, tol: 1e-3}", *model, "cluster: {kind: none}"]
    return "\n".join(lines) + "\n"
