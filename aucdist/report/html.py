"""Pages from templates: one self-contained HTML file each, without scripts and external resources."""

import functools
import re
from pathlib import Path
from typing import Any

from aucdist.extras import load_optional
from aucdist.report import text


def _with_code(sentence: str) -> Any:
    """Return a sentence as HTML, where text in backticks becomes code."""
    markupsafe = load_optional("markupsafe")
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(sentence))))


FILTERS = {
    "code": _with_code,
    "auc": text.auc_text,
    "auc_with_interval": text.auc_with_interval,
    "count": text.count_text,
    "excess": text.excess_text,
    "number": text.number_text,
    "parameters": text.parameters_text,
    "percent": text.percent_text,
    "seconds": text.seconds_text,
    "value": text.value_text,
}
"""The filters of templates for numbers and parameters, as in ``{{ area | auc }}``."""


def render_template(template: Path, **values: Any) -> str:
    """Return a page rendered from a template.

    `template`: an HTML template, which may extend ``base.html`` of this folder.
    """
    page = _environment(template.parent).get_template(template.name).render(**values)
    # names of files and features may contain lone surrogates, which have no UTF-8 encoding
    return page.encode("utf-8", "replace").decode("utf-8")


@functools.cache
def _environment(folder: Path) -> Any:
    """Return the cached Jinja environment of a folder, because compiling templates takes longer than rendering a page."""
    jinja2 = load_optional("jinja2")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FileSystemLoader([folder, Path(__file__).parent]),
    )
    environment.filters |= FILTERS
    return environment
