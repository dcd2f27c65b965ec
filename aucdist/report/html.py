"""Pages from templates: one self-contained HTML file each, without scripts and external resources."""

import re
from pathlib import Path
from typing import Any

from aucdist.extras import load_optional
from aucdist.report import text

FILTERS = {
    "auc": text.auc_text,
    "auc_with_interval": text.auc_with_interval,
    "count": text.count_text,
    "number": text.number_text,
    "parameters": text.parameters_text,
    "percent": text.percent_text,
    "rounded_up": text.rounded_up_text,
    "seconds": text.seconds_text,
    "value": text.value_text,
}
"""How templates write numbers and parameters: ``{{ area | auc }}``."""


def render_template(template: Path, **values: Any) -> str:
    """Return a page rendered from a template.

    `template`: an HTML template, which may extend ``base.html`` of this folder.
    """
    jinja2 = load_optional("jinja2")
    folder = Path(__file__).parent
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FileSystemLoader([template.parent, folder]),
    )
    environment.filters |= {**FILTERS, "code": _with_code}
    style = (folder / "style.css").read_text(encoding="utf-8")
    page = environment.get_template(template.name).render(style=style, **values)
    # A lone surrogate, which a file name or a feature name may contain, has no UTF-8 encoding.
    return page.encode("utf-8", "replace").decode("utf-8")


def _with_code(sentence: str) -> Any:
    """Return a sentence as HTML, with what stands between backticks as code."""
    markupsafe = load_optional("markupsafe")
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(sentence))))
