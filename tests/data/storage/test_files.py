"""Files: which ones a source means, writing whole or not at all, the web and its cache, and messages without secrets."""

import bz2
import errno
import gzip
import hashlib
import lzma
import math
import os
from pathlib import Path

import pyarrow as pa
import pytest
from support.web_server import folder_server

from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source
from aucdist.data.storage import faults, files, guard
from aucdist.data.storage.files import read_buffer
from aucdist.data.storage.guard import packing_of, unpacked
from aucdist.errors import InputError, RunError

SVM = b"1 1:1\n-1 1:2\n"


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A folder, its server, and a download cache of its own."""
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "www"
    folder.mkdir()
    with folder_server(folder) as server:
        yield folder, server


def test_a_download_is_kept_and_used_again(web, tmp_path):
    folder, server = web
    (folder / "a.svm").write_bytes(SVM)
    for _ in range(3):
        assert files.read_bytes(f"{server.url}/a.svm") == SVM
    assert server.asked.count("/a.svm") == 1
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert sorted(p.name for p in kept) == ["a.svm", "a.svm.sha256"]


def test_a_damaged_copy_is_fetched_again(web, tmp_path):
    folder, server = web
    (folder / "a.svm").write_bytes(SVM)
    files.read_bytes(f"{server.url}/a.svm")
    next((tmp_path / "cache").rglob("a.svm")).write_bytes(SVM[:-2])
    assert files.read_bytes(f"{server.url}/a.svm") == SVM
    assert server.asked.count("/a.svm") == 2


def test_a_download_with_another_checksum_is_refused_and_not_kept(web, tmp_path):
    folder, server = web
    (folder / "a.svm").write_bytes(SVM)
    good = hashlib.sha256(SVM).hexdigest()
    assert read(Source(source=f"{server.url}/a.svm", format="svmlight", sha256=good)).block.n_samples == 2
    with pytest.raises(InputError, match=rf"a\.svm has sha256 {good}, but {'0' * 64} is expected"):
        read(Source(source=f"{server.url}/a.svm", format="svmlight", sha256="0" * 64))
    (folder / "b.svm").write_bytes(SVM)
    with pytest.raises(InputError, match="is expected"):
        read(Source(source=f"{server.url}/b.svm", format="svmlight", sha256="0" * 64))
    assert not list((tmp_path / "cache").rglob("*b.svm*"))
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_faults_of_the_web_are_explained_without_secrets(web, monkeypatch):
    monkeypatch.setattr(faults, "RETRY_SECONDS", 0.0)
    folder, server = web
    host = server.url.removeprefix("http://")
    (folder / "empty").write_bytes(b"")
    for address, said in (
        (f"http://me:sesame@{host}/none.svm?token=sesame", "no such file"),
        (f"{server.url}/empty?token=sesame", "is empty"),
        ("http://me:sesame@127.0.0.1:9/a.svm?token=sesame", "cannot be reached"),
        ("gopher://me:sesame@127.0.0.1/a.svm", "URLs of gopher:// cannot be opened"),
    ):
        with pytest.raises(InputError) as caught:
            read(Source(source=address, format="svmlight"))
        assert said in str(caught.value)
        assert "sesame" not in str(caught.value)


def test_writing_replaces_a_file_whole(tmp_path):
    target = tmp_path / "new" / "f"
    files.write_bytes(str(target), b"one")
    files.write_bytes(f"file://{target}", b"two")
    assert target.read_bytes() == b"two"
    assert [p.name for p in target.parent.iterdir()] == ["f"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "f"
    files.write_bytes(str(target), b"old")

    def full(self, data):
        Path.open(self, "wb").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunError, match=r"cannot write .*f: No space left on device; make room"):
        files.write_bytes(str(target), b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("below", ["file/x", "/proc/none/x"])
def test_an_unwritable_place_is_refused(tmp_path, below):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot write"):
        files.write_bytes(str(tmp_path / below), b"x")


def test_a_folder_or_pattern_without_files_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").write_bytes(b"")
    for where in ("empty", "empty/", "*.csv"):
        with pytest.raises(InputError, match=r"nothing matches .*: there is no file to read"):
            files.files_of(str(tmp_path / where) + ("/" if where.endswith("/") else ""))


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path):
    folder = tmp_path / "[a] b"
    folder.mkdir()
    for name in ("rows[1].csv", "rows1.csv"):
        (folder / name).write_bytes(b"x")
    assert files.files_of(f"{folder}/rows[1].csv") == [f"{folder}/rows[1].csv"]
    assert len(files.files_of(f"{folder}/")) == len(files.files_of(str(folder))) == 2
    assert files.files_of(f"{tmp_path}/*/rows[0-9].csv") == [f"file://{folder}/rows1.csv"]


def test_a_file_in_a_folder_may_have_any_name(tmp_path):
    for name in ("a::b.csv", "a%2Fb?c#d.csv"):
        (tmp_path / name).write_bytes(b"x")
    urls = files.files_of(f"{tmp_path}/")
    assert [files.stat(url).size for url in urls] == [1, 1]
    assert [files.read_bytes(url) for url in urls] == [b"x", b"x"]
    assert len(files.files_of(f"file://localhost{tmp_path}/a%2?b*.csv")) == 1


def test_a_local_file_that_is_cut_short_while_it_is_read_does_not_kill_the_process(tmp_path):
    path = tmp_path / "f.parquet"
    path.write_bytes(bytes(2**16))
    with files.opened(str(path)) as file:
        path.write_bytes(b"x")
        assert file.read_buffer() == b"x"


def test_a_file_system_without_hard_links_is_named(tmp_path, monkeypatch):
    def no_links(self, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    with pytest.raises(InputError, match=r"f: this file must never be overwritten, .* disks with hard links"):
        files.create_bytes(str(tmp_path / "f"), b"x")
    assert not list(tmp_path.iterdir())


def test_progress_has_a_deadline(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = guard.Progress()
    now[0] = guard.SLOW_START_SECONDS
    progress.add(1)  # within the grace
    for _ in range(100):  # a steady transfer may last as long as it needs
        now[0] += 10.0
        progress.add(10 * guard.MIN_BYTES_PER_SECOND)
    now[0] += 9.0  # then a byte now and again
    with pytest.raises(guard.TooSlow):
        progress.add(1)


def test_a_slow_download_is_given_up_and_leaves_nothing(web, tmp_path, monkeypatch):
    folder, server = web
    (folder / "a.svm").write_bytes(SVM)
    with monkeypatch.context() as patch:
        patch.setattr(guard, "SLOW_START_SECONDS", 0.0)
        patch.setattr(guard, "MIN_BYTES_PER_SECOND", math.inf)
        with pytest.raises(InputError, match=r"cannot read .*a\.svm: the server sends less than"):
            files.read_bytes(f"{server.url}/a.svm")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files.read_bytes(f"{server.url}/a.svm") == SVM


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_has_no_end_is_not_read(tmp_path, make):
    path = tmp_path / "rows.csv"
    make(path)
    for read_it in (files.read_bytes, files.stat, read_buffer, lambda url: files.read_range(url, 0, 9, "x")):
        with pytest.raises(InputError, match=r"rows\.csv: it is a pipe, a socket or a device"):
            read_it(str(path))
    for form in ("csv", "svmlight", "parquet", "keel"):
        label = {"label": "y"} if form in ("csv", "parquet") else {}
        source = Source(source=str(path), format=form, **label)
        for open_it in (read, open_rows):
            with pytest.raises(InputError, match="a pipe, a socket or a device"):
                open_it(source)


def test_a_file_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(SVM)
    monkeypatch.setattr(guard, "total_memory", lambda: len(SVM) - 1)
    with pytest.raises(InputError, match="more than this machine's memory"):
        files.read_bytes(str(tmp_path / "f"))


# ---- compressed files: what is read, what is damaged, and what would fill the memory ----------


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
    assert packing_of(f"s3://bucket/f{ending}?versionId=1")
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
    monkeypatch.setattr(guard, "BYTES_AT_ONCE", 2**14)
    bomb = PACK[ending](bytes(2**22))
    monkeypatch.setattr(guard, "MAX_GROWTH", 2**19 // len(bomb))
    told = rf"f\{ending}: {len(bomb)} compressed bytes expand to over \d+; if you trust the file"
    with pytest.raises(InputError, match=told):
        unpacked(bomb, f"f{ending}")
    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**22)
    assert len(unpacked(bomb, f"f{ending}")) == 2**22


def test_other_names_are_taken_as_they_are():
    assert not packing_of("data.gz/f.csv")
    assert unpacked(TEXT, "f.svm") == TEXT


def test_what_may_not_be_looked_at_is_not_taken_for_missing(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", denied)
        with pytest.raises(InputError, match="access denied"):
            files.exists(str(tmp_path / "none"))
    assert not files.exists(str(tmp_path / "none"))


def test_a_new_file_never_replaces_one_that_another_process_has_just_written(tmp_path, monkeypatch):
    url, write = str(tmp_path / "c.yaml"), Path.write_bytes

    def write_after_another(self, data):
        write(Path(url), b"of another process")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", write_after_another)
    with pytest.raises(InputError, match=r"c.yaml already exists: choose another file with --output"):
        files.write_bytes(url, b"ours", new=True)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("c.yaml", b"of another process")]
    files.write_bytes(url, b"ours")
    assert Path(url).read_bytes() == b"ours"
    files.write_bytes(str(tmp_path / "new" / "d.yaml"), b"ours", new=True)
    assert (tmp_path / "new" / "d.yaml").read_bytes() == b"ours"
