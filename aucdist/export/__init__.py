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

TARGETS = ("onnx", "sql", "json", "scorecard")


def export(model: Any, to: str, output: str | None = None, **options: Any) -> bytes:
    """Return a model as the file of another system, as ``aucdist export`` writes it.

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
    if to == "scorecard":
        suffix = options.pop("suffix", "json")
        data = card_file(to_scorecard(model, **options), suffix, "Scorecard")
    elif to == "onnx":
        data = to_onnx(model, **options).SerializeToString()
    else:
        data = (to_sql if to == "sql" else to_json)(model, **options).encode()
    if output is not None:
        write_bytes(output, data)
    return data


class _Callable(ModuleType):
    """A module that can be called like its function `export`."""

    __call__ = staticmethod(export)


sys.modules[__name__].__class__ = _Callable
