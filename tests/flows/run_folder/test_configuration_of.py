"""The configuration of a run is read in one place, which names what is damaged."""

from pathlib import Path

import pytest

from aucdist.errors import InputError
from flows.run_folder.folder import configuration_of, data_of


def test_what_a_run_was_trained_on_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: d\ndata: {name: digits}\n")
    assert configuration_of(str(tmp_path)) == {"name": "d", "data": {"name": "digits"}}
    assert data_of(str(tmp_path)).name == "digits"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: \xd5", "config.yaml: not valid YAML"),
        (b"- 1", "config.yaml is damaged: it is not a mapping of keys"),
        (b"name: d", "config.yaml does not say which data the run was trained on: "),
        (b"data: {source: {source: 3}}", "config.yaml does not say which data the run was trained on: `source"),
    ],
)
def test_a_damaged_one_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(InputError, match=message):
        data_of(str(tmp_path))
