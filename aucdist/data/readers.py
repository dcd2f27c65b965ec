"""`read`: any supported source to a data set in memory."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data import files
from aucdist.data.block import Block
from aucdist.data.classes import choose_positive, class_name, count_classes, signs
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.delimited import parse_csv, parse_keel
from aucdist.data.embedded import load_embedded
from aucdist.data.encode import Encoded, encode
from aucdist.data.parquet import parse_parquet
from aucdist.data.source import Source
from aucdist.data.svmlight import parse_svmlight
from aucdist.errors import InputError

TABLE_PARSERS = {"csv": parse_csv, "keel": parse_keel, "parquet": parse_parquet}
# Above this share of non-zero entries a row is read faster as a dense one, and takes hardly more memory.
DENSE_ABOVE = 0.5


def read(source: Source, *, schema: Schema | None = None, name: str = "") -> Dataset:
    """Read a data set.

    Parameters
    ----------
    source : Source
        What to read and how.
    schema : Schema, optional
        That of the training data: the rows are then encoded like them, with the same features and classes.
    name : str
        What to call the data set; by default its source.

    Returns
    -------
    Dataset
        Dense, or CSR for svmlight files of which at most half of the entries are not zero (`Source.layout` decides
        otherwise). float64, but float32 for Parquet files whose numbers are all float32.

    Raises
    ------
    InputError
        If a file is missing, empty, damaged or malformed, if a value is missing or not finite, if there is only one class,
        or if rows, features, classes or checksum are not the expected ones.
    """
    name = name or files.shown(str(source.source))
    if source.format == "embedded":
        encoded, digest = load_embedded(source.source)
    else:
        encoded, digest = _read_files(source, schema)
    classes = [class_name(c) for c in encoded.classes]
    counts = count_classes(*_merged(encoded.codes, classes))
    if schema is None:
        positive, negative = choose_positive(counts, source.positive, name)
    else:
        choose_positive(counts, "minority", name)  # two classes are needed here as well
        positive, negative = schema.positive, schema.negative
    y = signs(encoded.codes, classes, positive, negative, name)
    block = Block.of(_laid_out(encoded.X, source), y)
    _check(source, name, block, counts, check_features=schema is None)
    if schema is None:
        schema = Schema(encoded.feature_names, encoded.label, positive, negative, encoded.categories)
    options = json.dumps(source.reading(), sort_keys=True)
    return Dataset(block, schema, hashlib.sha256(f"{digest} {options}".encode()).hexdigest(), name)


def _read_files(source: Source, schema: Schema | None) -> tuple[Encoded, str]:
    """Return the rows of all files of a source, and the checksums of the files."""
    urls = files.expand(source.source)
    if source.sha256 is not None and len(urls) > 1:
        raise InputError(f"`sha256` is the checksum of one file, but {source.source} means {len(urls)} of them")
    parsed, digests = [], []
    for url in urls:
        data = files.read_bytes(url, source.sha256)
        digests.append(hashlib.sha256(data).hexdigest())
        if source.sha256 not in (None, digests[-1]):
            raise InputError(f"{files.shown(url)} has sha256 {digests[-1]}, but {source.sha256} is expected")
        parsed.append(_parse(files.unpacked(data, url), files.shown(url), source, schema))
    shown = [files.shown(url) for url in urls]
    encoded = _joined(parsed, source) if source.format == "svmlight" else encode(parsed, shown, schema)
    return encoded, " ".join(digests)


def _parse(data: bytes, where: str, source: Source, schema: Schema | None) -> Any:
    if source.format == "svmlight":
        n_features = len(schema.feature_names) if schema else source.n_features
        return parse_svmlight(data, where, n_features=n_features, zero_based=source.zero_based)
    return TABLE_PARSERS[source.format](data, where, source, schema.categories if schema else None)


def _joined(parts: Sequence[tuple[sp.csr_matrix, np.ndarray]], source: Source) -> Encoded:
    """Put svmlight files below each other. A feature is called by its number."""
    n_features = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize(X.shape[0], n_features)
    X = sp.vstack([X for X, _ in parts], format="csr") if len(parts) > 1 else parts[0][0]
    classes, codes = np.unique(np.concatenate([labels for _, labels in parts]), return_inverse=True)
    start = 0 if source.zero_based else 1
    names = tuple(str(i) for i in range(start, start + n_features))
    return Encoded(X, codes, tuple(str(c) for c in classes.tolist()), names, "", {})


def _merged(codes: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return the codes for distinct names: a file may spell one class in two ways, such as 1 and +1."""
    distinct = sorted(set(names))
    return np.array([distinct.index(name) for name in names], dtype=np.intp)[codes], distinct


def _laid_out(X: Any, source: Source) -> Any:
    if not sp.issparse(X):
        return sp.csr_matrix(X) if source.layout == "csr" else X
    dense = X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1] if source.layout == "auto" else source.layout == "dense"
    return X.toarray() if dense else X


def _check(source: Source, name: str, block: Block, counts: dict[str, int], *, check_features: bool) -> None:
    """Compare with what the source says must be found. Rows encoded like others have the features of those."""
    for what, found, wanted in (
        ("rows", block.n_samples, source.rows),
        ("features", block.n_features, source.features if check_features else None),
        ("rows of each class", counts, source.classes),
    ):
        if wanted is not None and found != wanted:
            raise InputError(f"{name}: {wanted} {what} are expected, but {found} were found")
