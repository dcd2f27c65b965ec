"""Names for runs that tell them apart: by what differs in their configurations."""

from collections.abc import Mapping, Sequence
from typing import Any

from aucdist.data.storage.files import read_bytes, shown
from aucdist.errors import InputError
from aucdist.report.text import value_text
from flows.config.loading import parse_yaml

MOST_KEYS, MOST_TEXT = 3, 60
IGNORED = ("output", "name", "cluster", "checkpoint", "s3", "cache", "performance_report")
"""Keys that decide nothing of a model."""


def unique_names(names: Sequence[str], urls: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return names of runs, no two alike.

    `names`: of their configurations; returned as they are where they differ.
    `urls`: of their folders, which name them where their settings do not tell them apart.
    `settings`: what `settings_of` returned of each.
    """
    by_settings = [f"{name}{_difference(of, settings)}" for name, of in zip(names, settings, strict=True)]
    by_folder = [shown(url).rpartition("/")[2] for url in urls]
    for candidates in (list(names), by_settings, by_folder):
        if len(set(candidates)) == len(candidates):
            return candidates
    return [shown(url) for url in urls]


def settings_of(url: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run by their keys, such as ``model.lam``; those that a search chose are its own.

    `url`: the run folder; without a readable ``config.yaml`` the run has no settings.
    """
    try:
        config = parse_yaml(read_bytes(f"{url}/config.yaml").decode(), shown(url))
    except (InputError, UnicodeDecodeError):
        return {}
    found = _flat(config) if isinstance(config, dict) else {}
    search = about.get("search")
    chosen = search.get("best") if isinstance(search, dict) else None
    return found | {f"model.{key}": value for key, value in (chosen if isinstance(chosen, dict) else {}).items()}


def _flat(content: Any, key: str = "") -> dict[str, Any]:
    if not isinstance(content, dict):
        return {key: content}
    kept = {name: value for name, value in content.items() if key or name not in IGNORED}
    below = (_flat(value, f"{key}.{name}" if key else str(name)) for name, value in kept.items())
    return {name: value for found in below for name, value in found.items()}


def _difference(of: Mapping[str, Any], all_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings of one run that not all runs have: those of the model, or else of the data, or else the others."""
    if not all(all_runs):
        return ""  # nothing is known of one of them
    keys = list(dict.fromkeys(key for run in all_runs for key in run))
    differing = [key for key in keys if len({repr(run.get(key)) for run in all_runs}) > 1]
    parts = ([k for k in differing if k.startswith(start)] for start in ("model.", "data.", ""))
    chosen = next((part for part in parts if part), [])[:MOST_KEYS]
    texts = []
    for key in chosen:
        of_search = key.startswith(("grid.", "folds."))
        name, value = key.replace(".", " ") if of_search else key.rpartition(".")[2], of.get(key)
        if value is None:  # the default; of what belongs to a feature map or a search that there is none
            text = f"no {name}" if of_search or ".features." in key else f"default {name}"
        else:
            text = f"{name} {value_text(value) if isinstance(value, Mapping) else value}"
        texts.append(text[:MOST_TEXT])
    return f" ({', '.join(texts)})" if texts else ""
