"""URLs with passwords or signatures are left out of the plans that are written for workers.

A plan lies beside the results until these are complete, or for good where a run was killed, and others may read it. So the plan
has a number instead of such a URL, and the URL itself travels with each task.
"""

from typing import Any

from aucdist.data.sources.source import Source
from aucdist.data.storage.files import shown


def secret_urls(source: Source, *more: str) -> tuple[str, ...]:
    """Return the URLs of a source, and of `more`, that have a user, a password or a query, each once and in order."""
    return tuple(dict.fromkeys(url for url in (*source.urls(), *more) if shown(url) != url))


def redacted(content: Any, urls: tuple[str, ...]) -> Any:
    """Return content in types of JSON with numbers instead of the URLs."""
    return _replaced(content, {url: _name(url, i) for i, url in enumerate(urls)}) if urls else content


def restored(content: Any, urls: tuple[str, ...]) -> Any:
    """Return what `redacted` was given, from what it returned and the same URLs."""
    return _replaced(content, {_name(url, i): url for i, url in enumerate(urls)}) if urls else content


def _name(url: str, number: int) -> str:
    return f"{shown(url)}#redacted-{number}"


def _replaced(content: Any, by: dict[str, str]) -> Any:
    if isinstance(content, str):
        return by.get(content, content)
    if isinstance(content, dict):
        return {key: _replaced(value, by) for key, value in content.items()}
    return [_replaced(value, by) for value in content] if isinstance(content, list | tuple) else content
