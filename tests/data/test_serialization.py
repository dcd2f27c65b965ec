"""Values become bytes and come back, to the last bit; nothing else comes back."""

import ast
import dataclasses
import io
import json
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from aucdist.data.block import Block
from aucdist.data.serialization import deserialize, serialize
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.worker_part import LONG_ARRAY, pack, unpack
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows
from aucdist.maps import BinExpander
from aucdist.solvers.base import Certificate, Status

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int8, np.int64, np.bool_]), hnp.array_shapes(min_side=0, max_side=3)
)
TREES = st.recursive(
    PLAIN | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


def assert_same_tree(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.flags.c_contiguous) == (b.dtype, b.shape, b.flags.c_contiguous)
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same_tree(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same_tree(a[key], b[key])
    else:
        assert repr(a) == repr(b)  # nan is nan, and -0.0 is not 0.0


@given(TREES)
def test_trees_come_back_to_the_last_bit(tree):
    assert_same_tree(deserialize(serialize(tree)), tree)


def test_arrays_keep_the_order_of_their_axes_and_scalars_their_type():
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    back = deserialize(serialize({"columns": columns, "scalar": np.float32(0.1)}))
    assert back["columns"].flags.f_contiguous
    assert not back["columns"].flags.c_contiguous
    assert type(back["scalar"]) is np.float32


def test_our_own_records_come_back():
    block = Block.of(sp.csr_matrix(np.eye(3)), np.array([1, -1, 1]))
    back = deserialize(serialize((block, Certificate(1.0, 0.5, 0.5, Status.CONVERGED.value))))
    assert isinstance(back[0].rows, CsrRows)
    assert (back[0].X != block.X).nnz == 0
    assert back[1] == Certificate(1.0, 0.5, 0.5, "converged")


def test_a_field_that_is_none_may_be_left_out():
    block = Block.of(np.eye(2), np.array([1, -1]))
    fitted = dataclasses.replace(BinExpander(bins=2).fit_blocks(LocalBlocks([block])), ranges=None)
    assert fitted.ramps is None
    record = json.loads(np.load(io.BytesIO(serialize(fitted)))["tree"].tobytes())
    assert len(record) == 3 + len(dataclasses.fields(fitted)) - 2  # as versions without the fields wrote it
    assert deserialize(serialize(fitted)).ramps is None
    ramps = np.array([True, False])
    np.testing.assert_array_equal(deserialize(serialize(dataclasses.replace(fitted, ramps=ramps))).ramps, ramps)
    with pytest.raises(InputError, match="but the file has 2"):
        deserialize(made(["record", "aucdist.maps.bins", "BinMap", 1, 2]))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_come_back(kind):
    back = deserialize(serialize(kind(np.eye(4, 3))))
    assert type(back) is kind
    assert np.array_equal(back.toarray(), np.eye(4, 3))


class Foreign:
    pass


@pytest.mark.parametrize("value", [Foreign(), {1, 2}, np.array([None]), print, b"bytes", 1j])
def test_other_things_are_not_serialized(value):
    with pytest.raises(TypeError, match="cannot be serialized"):
        serialize([value])


def made(tree):
    buffer = io.BytesIO()
    np.savez(buffer, tree=np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zip",
        pickle.dumps([1]),
        serialize([1, np.zeros(5)])[:-30],
        made(["record", "os", "system", "true"]),
        made(["record", "subprocess", "Popen", "true"]),
        made(["record", "aucdist.data.serialization", "deserialize", "x"]),
        made(["record", "aucdist.data.serialization", "json", "x"]),
        made(["record", "aucdist.solvers.base", "Certificate", 1.0]),
        made(["record", "aucdist.nowhere", "Certificate", 1.0]),
        made(["record", "aucdist.errors", "RunError", "x"]),
        made(["array", 3]),
        made(["unheard"]),
    ],
)
def test_other_bytes_are_refused_and_nothing_of_them_runs(data):
    with pytest.raises(InputError, match="not a value that aucdist has serialized"):
        deserialize(data)


def test_an_array_of_objects_in_the_file_is_not_unpickled():
    buffer = io.BytesIO()
    np.savez(buffer, tree=np.frombuffer(b'["array", 0]', dtype=np.uint8), **{"0": np.array([Foreign()])})
    with pytest.raises(InputError, match="not a value that aucdist has serialized"):
        deserialize(buffer.getvalue())


def test_threads_parse_one_after_the_other(monkeypatch):
    data, parsed, running, most = serialize([np.zeros(2)] * 3), ast.literal_eval, [], []

    def slow(text):
        running.append(text)
        most.append(len(running))
        time.sleep(0.001)
        running.pop()
        return parsed(text)

    monkeypatch.setattr(ast, "literal_eval", slow)
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(deserialize, [data] * 16))
    assert all(len(tree) == 3 for tree in trees)
    assert (len(most), max(most)) == (64, 1)


# ---- what travels between client and workers: every bit arrives, and counts travel in few bytes


VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 255.0, 256.0, -32769.0, 2.0**31, 2.0**53, 0.5, np.inf, np.nan])


@given(st.lists(VALUES, min_size=1, max_size=3), st.integers(0, 2 * LONG_ARRAY), st.integers(1, 2 * LONG_ARRAY))
def test_every_bit_arrives(values, place, n):
    sent = np.arange(float(n))
    sent[place % n :][: len(values)] = values[: n - place % n]
    for array in (sent, sent[::-1], sent.reshape(1, -1), np.asfortranarray(np.outer(sent, [1.0, 2.0]))):
        buffers = []
        arrived = unpack(pack({"a": [array]}, buffers), buffers=buffers)["a"][0]
        assert arrived.tobytes() == array.tobytes()
        assert arrived.dtype == array.dtype
        assert arrived.flags.f_contiguous == array.flags.f_contiguous or not array.flags.contiguous
        assert arrived.flags.writeable


@pytest.mark.parametrize("beside", [False, True])
def test_larger_arrays_travel_beside_the_bytes_where_they_may(beside):
    large, small = np.linspace(0.0, 1.0, 10_000), np.linspace(0.0, 1.0, 10)
    buffers = [] if beside else None
    packed = pack([large, small, large[::-1]], buffers)
    assert (len(packed) < 1000 + large.nbytes) == beside  # the reversed array is no buffer, and is copied
    arrived = unpack(packed, buffers=buffers or ())
    assert [array.tobytes() for array in arrived] == [array.tobytes() for array in (large, small, large[::-1])]
    assert np.shares_memory(arrived[0], large) == beside


@pytest.mark.parametrize(("most", "share"), [(200, 1 / 8), (60_000, 1 / 4), (2**31 - 1, 1 / 2), (2**40, 1)])
def test_counts_travel_in_few_bytes(most, share):
    counts = np.zeros((24, 1000))
    counts[3, 7] = most
    assert len(pack(counts)) == pytest.approx(share * counts.nbytes, rel=0.01)
