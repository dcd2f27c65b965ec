"""What was watched so far: a record of each batch, its scores, its labels, and one page for all of them.

The folder has ``batches/<name>.json``, created once for each batch; ``scores/<name>/`` unless `aucdist score` wrote them;
``labels/<name>.parquet`` and ``performance/<name>.json``, which are replaced as a whole when labels come; ``leases/``, since one
process at a time adds labels; and ``index.html``.
"""

import io
import json
import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from aucdist.data.checked import parse_any
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.report.watch import render_watch_page
from flows.config.base import NAME

PAGE = "index.html"


@dataclass(frozen=True)
class WatchState:
    """The folder of what was watched."""

    url: str

    def at(self, kind: str, batch: str, suffix: str = ".json") -> str:
        """Return the URL of a file of a batch."""
        return f"{self.url}/{kind}/{batch}{suffix}"

    def batches(self) -> list[str]:
        """Return the names of all batches, by the time when they were watched."""
        names = [name.removesuffix(".json") for name in files.names_in(f"{self.url}/batches") if name.endswith(".json")]
        records = {name: self.read("batches", name) for name in names if re.fullmatch(NAME, name)}
        return sorted(records, key=lambda name: (str(records[name].get("time")), name))

    def has(self, kind: str, batch: str) -> bool:
        """Tell whether there is a record of a batch."""
        return files.exists(self.at(kind, batch))

    def read(self, kind: str, batch: str) -> dict[str, Any]:
        """Return a record of a batch.

        Raises InputError if it is missing or damaged.
        """
        url = self.at(kind, batch)
        content = parse_any(files.read_bytes(url), files.shown(url))
        if not isinstance(content, dict):
            raise InputError(f"{files.shown(url)} is damaged: it is no record of a batch")
        return content

    def create(self, batch: str, record: dict[str, Any]) -> None:
        """Write the record of a batch, which must not be there.

        Raises InputError if another process has just watched a batch of this name.
        """
        if not files.create_bytes(self.at("batches", batch), _json(record)):
            raise InputError(f"batch {batch} is being watched by another process: name another one by --batch")

    def write(self, kind: str, batch: str, record: dict[str, Any]) -> None:
        """Write a record of a batch, which replaces an earlier one as a whole."""
        files.write_bytes(self.at(kind, batch), _json(record))

    def labels(self, batch: str) -> pd.DataFrame:
        """Return the labels that are known so far: ``row_id`` and ``y``."""
        url = self.at("labels", batch, ".parquet")
        if not files.exists(url):
            return pd.DataFrame({"row_id": pd.Series(dtype="int64"), "y": pd.Series(dtype="int8")})
        return pd.read_parquet(io.BytesIO(files.read_bytes(url)))

    def write_labels(self, batch: str, table: pd.DataFrame) -> None:
        """Write the labels that are known so far."""
        out = io.BytesIO()
        table.to_parquet(out, index=False)
        files.write_bytes(self.at("labels", batch, ".parquet"), out.getvalue())

    def write_page(self, title: str) -> str:
        """Write the page of all batches, and return its URL."""
        records = []
        for batch in self.batches():
            known = self.read("performance", batch) if self.has("performance", batch) else None
            records.append(self.read("batches", batch) | {"performance": known})
        files.write_bytes(f"{self.url}/{PAGE}", render_watch_page(title, records).encode())
        return f"{self.url}/{PAGE}"


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, indent=1, allow_nan=False).encode() + b"\n"
