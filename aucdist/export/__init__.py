"""Models for other systems: a description in JSON, a query in SQL, a graph in ONNX, a scorecard.

The module can be called: ``aucdist.export(model, "sql")`` is `export`.
"""

import sys
from types import ModuleType
from typing import Any

from aucdist.data.storage.files import write_bytes
from aucdist.errors import unknown
from aucdist.export.cards import Scaling, card_file, to_scorecard
from aucdist.export.onnx_model import to_onnx
from aucdist.export.portable import to_json
from aucdist.export.sql import to_sql

__all__ = ["Scaling", "export", "to_json", "to_onnx", "to_scorecard", "to_sql"]


TARGETS: dict[str, Any] = {
    "onnx": (to_onnx, lambda graph, *_: graph.SerializeToString()),
    "sql": (to_sql, lambda query, *_: query.encode()),
    "json": (to_json, lambda text, *_: text.encode()),
    "scorecard": (to_scorecard, card_file),
}
"""The two functions of each format: ``make(model, **options)`` returns the model in it, and ``content(made, suffix, title)`` the
bytes of its file. The options of ``aucdist export`` follow from those of `make`."""


def export(model: Any, to: str, output: str | None = None, **options: Any) -> bytes:
    """Convert a model to a file of another system, as ``aucdist export`` does, and return its content.

    Parameters
    ----------
    model : estimator or LinearModel
        A fitted estimator of aucdist, or what `aucdist.model.load_model` returns.
    to : {"onnx", "sql", "json", "scorecard"}
        The target format.
    output : str, optional
        The file to write, a path or URL.
    **options
        Keyword arguments of `to_onnx`, `to_sql`, `to_json` or `to_scorecard`. For a scorecard also ``suffix``, which says
        whether it is ``json`` (the default), ``md``, ``csv`` or ``html``.

    Returns
    -------
    bytes
        The content of the file.

    Raises
    ------
    InputError
        If the target is unknown or cannot express the model, the estimator is not fitted, or the file cannot be written.

    Examples
    --------
    >>> import aucdist
    >>> model = aucdist.PairwiseHingeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> query = aucdist.export(model, "sql", table="clicks").decode()
    >>> query.splitlines()[-1]
    'FROM scored'
    """
    if to not in TARGETS:
        raise unknown("target", to, TARGETS)
    make, content = TARGETS[to]
    suffix = options.pop("suffix", "json")
    data: bytes = content(make(model, **options), suffix, "Scorecard")
    if output is not None:
        write_bytes(output, data)
    return data


class _Callable(ModuleType):
    """A module that can be called like its function `export`."""

    __call__ = staticmethod(export)


sys.modules[__name__].__class__ = _Callable
