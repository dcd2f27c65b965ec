"""Labels that become known later, read from a file."""

import io
from typing import Any

import numpy as np
import pandas as pd

from aucdist.data.label_sets import places
from aucdist.data.labels import Labels, class_name
from aucdist.data.own_files import ROW_ID
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.linear_model import LinearModel


def read_labels(url: str, model: LinearModel) -> tuple[pd.DataFrame, int]:
    """Return the labels in a Parquet or CSV file, and the number of rows that have none yet.

    `url`: a file with the column ``row_id`` and one of the label: that of the training data, or the only other one.
    `model`: its classes are those of the labels.
    Returns `table`, ``row_id`` (int64) and ``y`` (int8, -1 or +1; of several classes their names, with commas between
        topics), sorted; `missing`.
    Raises InputError if the file has no such columns, a row twice, or a label that is none of the classes.
    """
    where = files.shown(url)
    table = _table(url)
    if ROW_ID not in table:
        raise InputError(f"{where} has no column {ROW_ID!r}: it says which row of the batch a label belongs to")
    others = [name for name in table.columns if name != ROW_ID]
    label = model.schema.label if model.schema.label in others else (others[0] if len(others) == 1 else None)
    if label is None:
        raise InputError(
            f"{where}: which of {', '.join(map(repr, others[:8])) or 'no columns'} is the label? That of the training data was "
            f"{model.schema.label!r}"
        )
    row_id, values = table[ROW_ID], table[label]
    if not pd.api.types.is_integer_dtype(row_id) or row_id.isna().any() or (row_id < 0).any():
        raise InputError(f"{where}: {ROW_ID} must be whole numbers from 0, as `aucdist score` writes them")
    if row_id.duplicated().any():
        raise InputError(f"{where}: row {int(row_id[row_id.duplicated()].iloc[0])} is there twice")
    known = (values.notna() & (values.astype(str).str.strip() != "")).to_numpy()
    y = _names(values[known], model, where) if model.classes else _signs(values[known], model, where)
    labels = pd.DataFrame({ROW_ID: row_id[known].to_numpy(np.int64), "y": y})
    return labels.sort_values(ROW_ID, ignore_index=True), int((~known).sum())


def _table(url: str) -> pd.DataFrame:
    data, where = files.read_bytes(url), files.shown(url)
    try:
        if url.endswith(".parquet"):
            return pd.read_parquet(io.BytesIO(data))
        if url.endswith(".csv"):
            return pd.read_csv(io.BytesIO(data))
    except Exception as e:  # of pandas and pyarrow: there are many
        raise InputError(f"cannot read {where}: {str(e).splitlines()[0]}") from None
    raise InputError(f"{where}: labels are read from .parquet and .csv files")


def _names(values: "pd.Series[Any]", model: LinearModel, where: str) -> np.ndarray:
    codes, texts = pd.factorize(values.astype(str))
    labels = Labels.of(codes, list(texts), topics=model.topics)
    schema = model.schema_of_labels
    if not model.topics:
        places(labels, schema, where)  # refuses a class that the model does not know
    return np.array(labels.names, dtype=object)[labels.codes]


def _signs(values: "pd.Series[Any]", model: LinearModel, where: str) -> np.ndarray:
    sign = {name: 1 for name in model.schema.positive} | {name: -1 for name in model.schema.negative}
    distinct = {value: sign.get(class_name(value)) for value in values.unique()}
    unknown = [value for value, y in distinct.items() if y is None]
    if unknown:
        raise InputError(
            f"{where}: label {unknown[0]!r} is none of the classes of the model: {', '.join([*sign][:20])}"
        )
    return values.map(distinct).to_numpy(np.int8)
