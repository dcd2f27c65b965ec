"""The YAML that `aucdist init` writes: a configuration with comments."""

import re
from collections.abc import Mapping, Sequence

import yaml

from flows.init.columns import HASHED_INTO, ColumnGuess

MOST_COMMENT = 90
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
WORDS = {"y", "n", "yes", "no", "true", "false", "on", "off", "null", "nan", "inf"}
"""What YAML, of one version or another, reads as something else than a text."""


def quoted(text: str) -> str:
    """Return a text as YAML reads it back, with quotes where they are needed."""
    return text if PLAIN.fullmatch(text) and text.lower() not in WORDS else _escaped(text)


def _escaped(text: str) -> str:
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))).rstrip("\n")


def comment(text: str) -> str:
    """Return a text as a comment of one line."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return "# " + (printable if len(printable) <= MOST_COMMENT else printable[: MOST_COMMENT - 3] + "...")


def yaml_text(
    name: str, source: dict[str, str], columns: Sequence[ColumnGuess], classes: Sequence[tuple[str, int]], positive: str,
    head: Sequence[str], directions: Mapping[str, str],
) -> str:  # fmt: skip
    """Return a configuration for training.

    `source`: keys of the source as they are written: file, format, label, ...
    `columns`: all but the label.
    `classes`: each class with its number of rows.
    `directions`: of the numbers that seem to have one.
    """
    of = {kind: [c for c in columns if c.kind == kind] for kind in ("drop", "dates", "categorical", "hashed", "number")}
    lines = _first_lines(name, source, classes, positive, head)
    lines += _listed("drop", [(quoted(c.name), c.comment) for c in of["drop"]], "- ")
    lines += _listed("dates", [(f"{quoted(c.name)}: [{', '.join(c.parts)}]", c.comment) for c in of["dates"]])
    formats = {c.date_format for c in of["dates"]} - {None}
    lines += [f"    date_format: {quoted(str(form))}  # check that day and month are not swapped" for form in formats]
    lines += _listed("categorical", [(quoted(c.name), c.comment) for c in of["categorical"]], "- ")
    lines += _listed("hashed", [(f"{quoted(c.name)}: {HASHED_INTO}", c.comment) for c in of["hashed"]])
    lines += [f"    {comment(f'number {c.name}: {c.comment}')}" for c in of["number"]]
    gaps = [c for c in columns if c.missing and c.kind != "drop"]
    if gaps:
        lines.append(_missing_line({c.name: c.missing for c in gaps}))
    lines.append("    # unknown: ignore  # for categories that only new rows have; by default they are an error")
    if any(c.kind in ("number", "dates") for c in gaps):
        lines.append("  impute: median  # numbers that are missing; a missing text is a category of its own")
    layout = "maxabs" if of["hashed"] else "standard"  # hashed columns make sparse rows, which are not centred
    lines += [
        f"  scale: {layout}", "  test: {fraction: 0.2, seed: 0}",
        "model: {estimator: PairwiseHingeClassifier, lam: 1e-3, tol: 1e-3}",
    ]  # fmt: skip
    if directions:
        listed = ", ".join(f"{quoted(column)}: {direction}" for column, direction in directions.items())
        lines += [
            "# In place of the line above: shapes that rise or fall, as each number alone seems to; keep what you can defend.",
            f"# model: {{features: bins, lam: 1e-2, monotone: {{{listed}}}}}",
        ]
    return "\n".join([*lines, "cluster: {kind: none}"]) + "\n"


def _first_lines(
    name: str, source: dict[str, str], classes: Sequence[tuple[str, int]], positive: str, head: Sequence[str]
) -> list[str]:
    lines = [*map(comment, head), f"name: {quoted(name)}", "data:", "  source:"]
    lines += [f"    {key}: {value}" for key, value in source.items()]
    counts = ", ".join(f"{label} {n:,}" for label, n in classes)
    return [*lines, f"    positive: {quoted(positive)}  {comment(f'the rarer class; rows of each: {counts}')}"]


def _missing_line(missing: Mapping[str, int]) -> str:
    return f"    missing: keep  {comment('rows without: ' + ', '.join(f'{c} {n:,}' for c, n in missing.items()))}"


def rows_yaml_text(
    name: str, source: dict[str, str], classes: Sequence[tuple[str, int]], positive: str, head: Sequence[str],
    remarks: Sequence[str], missing: Mapping[str, int], sparse: bool,
) -> str:  # fmt: skip
    """Return a configuration for training on a file that has no columns to choose from.

    `name`, `source`, `classes`, `positive` and `head`: as of `yaml_text`.
    `missing`: missing values of the columns that have some.
    `sparse`: whether rows become CSR.
    """
    lines = _first_lines(name, source, classes, positive, head)
    lines += [f"    {comment(remark)}" for remark in remarks]
    if missing:
        lines.append(_missing_line(missing))
        lines.append("  impute: median  # numbers that are missing; a missing text is a category of its own")
    lines += [
        f"  scale: {'maxabs' if sparse else 'standard'}", "  test: {fraction: 0.2, seed: 0}",
        "model: {estimator: PairwiseHingeClassifier, lam: 1e-3, tol: 1e-3}", "cluster: {kind: none}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _listed(key: str, entries: Sequence[tuple[str, str]], dash: str = "") -> list[str]:
    return [f"    {key}:"] * bool(entries) + [f"      {dash}{entry}  {comment(why)}" for entry, why in entries]
