"""Data sets of the catalog are downloaded whole and checked, or not at all; a local server stands for the web."""

import hashlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.web_server import FolderServer, folder_server

from aucdist.data import sources
from aucdist.data.sources import Source
from aucdist.data.storage import urls
from aucdist.errors import InputError
from flows.cli import app

ROWS = b"1 1:1\n-1 1:2\n"
PACKED = lzma.compress(ROWS)


def entry(source: str, data: bytes, origin: str | None = None) -> Source:
    return Source(source=source, format="svmlight", positive=1, sha256=hashlib.sha256(data).hexdigest(), origin=origin)


ENTRIES = {
    "plain": entry("libsvm/plain.svm", ROWS, "github:owner/rows@0123abcd4567:some folder/rows"),
    "packed": entry("libsvm/packed.xz", PACKED, "github:owner/rows@0123abcd4567:some folder/rows"),
    "changed": entry("libsvm/changed.svm", b"1 1:3\n", "github:owner/rows@0123abcd4567:some folder/rows"),
    "mine": entry("libsvm/mine.svm", ROWS, "a book"),
    "unchecked": Source(source="absent/rows.svm", format="svmlight", positive=1, origin="github:owner/rows@01:rows"),
    "bundled": sources.find_source("digits"),
}


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderServer]:
    """A server with the files, in place of GitHub and as a mirror, an empty data folder, and a catalog of our own."""
    for name in ("owner/rows/raw/0123abcd4567/some folder/rows", "libsvm/mine.svm"):
        file = tmp_path / "www" / name
        file.parent.mkdir(parents=True)
        file.write_bytes(ROWS)
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(sources, "catalog", lambda: ENTRIES)
    with folder_server(tmp_path / "www") as server:
        monkeypatch.setattr(sources, "GITHUB", server.url)
        yield server


def test_a_data_set_is_fetched_once_from_its_origin_and_packed_as_the_catalog_has_it(web, tmp_path):
    runner = CliRunner()
    done = runner.invoke(app, ["data", "fetch", "plain", "packed", "bundled", "--json"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "data/libsvm/plain.svm").read_bytes() == ROWS
    assert (tmp_path / "data/libsvm/packed.xz").read_bytes() == PACKED
    result = json.loads(done.stdout)
    assert result["plain"] == {"files": [str(tmp_path / "data/libsvm/plain.svm")], "fetched": True}
    assert result["bundled"] == {"files": [], "fetched": False}
    assert web.asked == ["/owner/rows/raw/0123abcd4567/some%20folder/rows"] * 2
    assert "is here already" in runner.invoke(app, ["data", "fetch", "plain"]).stdout
    assert len(web.asked) == 2
    (tmp_path / "data/libsvm/plain.svm").write_bytes(b"damaged")
    assert sources.fetch("plain")[1]
    assert (tmp_path / "data/libsvm/plain.svm").read_bytes() == ROWS


def test_a_download_that_is_cut_off_begins_again_and_tells_its_progress(web, tmp_path, monkeypatch):
    web.cut_off = 1
    progress: list[tuple[int, int | None]] = []
    sources.fetch("plain", received=lambda n, stated: progress.append((n, stated)))
    assert (tmp_path / "data/libsvm/plain.svm").read_bytes() == ROWS
    assert progress[-1] == (len(ROWS), len(ROWS))
    assert [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()] == ["plain.svm"]


def test_nothing_is_kept_of_what_is_not_what_the_catalog_says(web: FolderServer, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match="has changed, or was altered on the way"):
            sources.fetch("changed")
    assert not (tmp_path / "data").exists()
    assert len(web.asked) == 2


def test_what_has_no_address_or_no_checksum_is_named_and_a_mirror_has_addresses(web, tmp_path):
    said = r"mine cannot be downloaded: the catalog has no address for it\. Get it from a book and save it as"
    with pytest.raises(InputError, match=said):
        sources.fetch("mine")
    with pytest.raises(InputError, match="unchecked cannot be downloaded: the catalog has no checksum for it"):
        sources.fetch("unchecked", web.url)
    done = CliRunner().invoke(app, ["data", "fetch", "mine", "--mirror", web.url])
    assert (done.exit_code, (tmp_path / "data/libsvm/mine.svm").read_bytes()) == (0, ROWS)
    (tmp_path / "data/libsvm/mine.svm").unlink()
    sources.fetch("mine", str(tmp_path / "www"))
    assert (tmp_path / "data/libsvm/mine.svm").read_bytes() == ROWS


def test_an_installed_package_saves_data_sets_in_the_cache_of_the_user(web, tmp_path, monkeypatch):
    monkeypatch.delenv("AUCDIST_DATA")
    assert urls.data_root().parts[-2:] == ("shared", "data")
    monkeypatch.setattr(urls, "__file__", str(tmp_path / "site-packages/aucdist/data/storage/urls.py"))
    sources.fetch("plain")
    assert (tmp_path / "cache/data/libsvm/plain.svm").read_bytes() == ROWS


@pytest.mark.parametrize("name", ["churn", "credit", "intrusion", "news-topics", "rare-disease"])
def test_a_story_begins_with_the_command_that_fetches_its_data(name: str) -> None:
    page = (Path(__file__).parents[3] / f"docs/pages/examples/{name}.md").read_text(encoding="utf-8")
    first = page.partition("```sh\n")[2].partition("```")[0]
    source = sources.find_source(first.partition("aucdist data fetch ")[2].split()[0])
    assert source.sha256 is not None
    assert sources.ORIGIN.fullmatch(source.origin or "")
    assert "os.environ" not in page
