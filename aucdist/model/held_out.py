"""Score labelled rows by a model, and count how many of them the model was trained on."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.data.shards.reading import open_rows
from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, read_bytes, shown
from aucdist.drift.leaks import RowDigests, digests_of
from aucdist.drift.profile import Profile
from aucdist.errors import InputError
from aucdist.model.batch_scoring import members_of_block, source_for_scoring
from aucdist.model.files import DIGESTS, PROFILE, load_model, model_folder
from aucdist.model.linear_model import LinearModel


class HeldOutRows(NamedTuple):
    """Labelled rows with their scores by a model, in the order of their ids.

    Attributes
    ----------
    row_id : ndarray of shape (n_rows,), int64
        The ids of the rows.
    y : ndarray of shape (n_rows,), int8
        The labels. For several classes, bool of shape (n_rows, n_classes): which classes each row has.
    scores : ndarray of shape (n_rows,), float64
        The scores. For several classes, of shape (n_rows, n_classes).
    checked, known : int
        The number of rows that could be looked up among the digests of the training rows, and how many of them were found.
    """

    row_id: ndarray
    y: ndarray
    scores: ndarray
    checked: int
    known: int


def score_labelled(
    model: LinearModel,
    source: Source,
    seen: RowDigests,
    ids: ndarray | None,
    name: str,
) -> HeldOutRows:
    """Score labelled rows, part by part.

    Parameters
    ----------
    model : LinearModel
        The model.
    source : Source
        The rows, which are read like the training rows. By default, the label is in the same column.
    seen : RowDigests
        Digests of the training rows.
    ids : ndarray of int64 or None
        The ids of the rows to score, ascending; None scores all rows.
    name : str
        The name of the data set in error messages.

    Returns
    -------
    HeldOutRows

    Raises
    ------
    InputError
        If the rows do not have the features of the model, or a label is not one of its classes.
    """
    reader = open_rows(source_for_scoring(source, model, labelled=True), schema=model.schema_of_labels, name=name)
    parts, checked, known = [], 0, 0
    for item in reader.items:
        block = reader.read(item)
        if ids is not None:
            block = block.take(np.flatnonzero(np.isin(block.row_id, ids)))
        rows = model.encoded(block.X)
        scores = model.scores(rows)
        looked_up = seen.look_up(digests_of(rows))
        checked, known = checked + looked_up[0], known + looked_up[1]
        y = members_of_block(block, reader.schema, model.classes) if model.classes else block.y
        parts.append((block.row_id, y, scores))
    row_id, y, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row_id, kind="stable")
    return HeldOutRows(row_id[order], y[order], scores[order], checked, known)


def load_with_seen(folder: str) -> tuple[LinearModel, tuple[Profile, RowDigests]]:
    """Return a model, and what it stores about its training rows: their profile and their digests.

    Parameters
    ----------
    folder : str
        As for `load_model`.

    Returns
    -------
    model : LinearModel
    stored : tuple (Profile, RowDigests)

    Raises
    ------
    InputError
        If there is no such model, if it is damaged, or if it stores nothing about its training rows.
    """
    model, folder = load_model(folder), model_folder(folder)
    if not exists(f"{folder}/{PROFILE}"):
        raise InputError(
            f"{shown(folder)} has no {PROFILE}, so nothing is known about its training rows: train it with `aucdist train`"
        )
    profile = Profile.from_bytes(read_bytes(f"{folder}/{PROFILE}"), f"{shown(folder)}/{PROFILE}")
    digests = f"{folder}/{DIGESTS}"
    return model, (profile, RowDigests.from_bytes(read_bytes(digests), shown(digests)))
