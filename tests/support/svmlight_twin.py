"""Rows out of bytes of svmlight: by the kernels, and by plain Python."""

import itertools
import math
import re

import numpy as np

from aucdist.data.formats import svmlight_kernels as svmlight

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parsed_rows(text, topics=False, ignore=False, first=1, last=9, dtype=np.float64):
    """Return labels, rows and width as the kernels read them, or a fault and its place."""
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    n_rows, n_values = svmlight.count_at_most(data)
    spans, offsets = np.zeros((n_rows, 2), dtype=np.int64), np.zeros(n_rows + 1, dtype=np.int64)
    indices, values, hard = np.zeros(n_values, np.int32), np.zeros(n_values, dtype), np.zeros((n_values, 3), np.int64)
    n, _, n_hard, width, fault, place = svmlight.parse_rows(
        data, first, last, float(np.finfo(dtype).max), topics, ignore, np.zeros(0, np.int64), spans, offsets, indices, values,
        hard,
    )  # fmt: skip
    for at, start, stop in hard[:n_hard]:
        values[at] = float(text.encode()[start:stop])
    if n_hard and not np.isfinite(values[hard[:n_hard, 0]]).all():
        fault, place = svmlight.TOO_LARGE, 0
    if fault:
        return fault, place
    labels = [text.encode()[a:b].decode() for a, b in spans[:n]]
    rows = [(indices[a:b].tolist(), values[a:b].tolist()) for a, b in itertools.pairwise(offsets[: n + 1])]
    return labels, rows, width


def plain_rows(text, topics, ignore):
    """Return the same by plain Python; None for whatever is wrong."""
    labels, rows, width = [], [], 0
    for line in text.split("\n"):
        tokens = line.partition("#")[0].split()
        if not tokens:
            continue
        has_label = not (topics and ":" in tokens[0])
        labels.append(tokens.pop(0) if has_label else "")
        before, row = 0, ([], [])
        for token in tokens:
            if ignore and token.startswith("qid:"):
                continue
            index, colon, value = token.partition(":")
            if not colon or not index.isdigit() or not NUMBER.fullmatch(value.encode()):
                return None
            if not before < int(index) <= 9 or math.isinf(float(value)):
                return None
            before = int(index)
            if float(value):
                row[0].append(before - 1)
                row[1].append(float(value))
        width = max(width, before)
        rows.append(row)
    return labels, rows, width
