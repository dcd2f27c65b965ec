"""Compressed files: what is read, what is damaged, and what would fill the memory."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from aucdist.data.storage import guard
from aucdist.data.storage.guard import is_packed, unpacked
from aucdist.errors import InputError

TEXT = b"1 1:1 3:2\n-1 2:1\n" * 100


def zst(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zst}


@pytest.mark.parametrize("ending", PACK)
def test_what_was_packed_comes_out(ending):
    data = PACK[ending](TEXT)
    assert is_packed(f"s3://bucket/f{ending}?versionId=1")
    assert unpacked(data, f"f{ending}") == TEXT
    assert unpacked(data + data, f"f{ending}") == TEXT + TEXT  # files that were put one behind the other
    assert unpacked(PACK[ending](b"\xef\xbb\xbf" + TEXT), f"f{ending}") == TEXT


@pytest.mark.parametrize("ending", PACK)
def test_what_is_cut_off_or_no_such_file_is_refused(ending):
    data = PACK[ending](TEXT)
    for damaged in (data[:-1], data[:-4], data[: len(data) // 2], b"garbage"):
        with pytest.raises(InputError, match=rf"f\{ending} is truncated or damaged"):
            unpacked(damaged, f"f{ending}")
    for empty in (b"", b" \n\n", b"\xef\xbb\xbf"):
        with pytest.raises(InputError, match=rf"f\{ending} is empty"):
            unpacked(PACK[ending](empty), f"f{ending}")


@pytest.mark.parametrize("ending", PACK)
def test_what_grows_beyond_measure_is_refused_before_it_does(ending, monkeypatch):
    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**16)
    monkeypatch.setattr(guard, "CHUNK", 2**14)
    bomb = PACK[ending](bytes(2**22))
    monkeypatch.setattr(guard, "MOST_GROWTH", 2**19 // len(bomb))
    with pytest.raises(
        InputError, match=rf"f\{ending}: {len(bomb)} bytes unpack to more than \d+; if you trust the file"
    ):
        unpacked(bomb, f"f{ending}")
    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**22)
    assert len(unpacked(bomb, f"f{ending}")) == 2**22


def test_other_names_are_taken_as_they_are():
    assert not is_packed("data.gz/f.csv")
    assert unpacked(TEXT, "f.svm") == TEXT
