"""Rows of days, and the configuration of a night that keeps their model current."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml


def day(folder: Path, number: int, shift: float = 0.0) -> Path:
    """Write the rows of a day, and return the file."""
    rng = np.random.default_rng(number)
    table = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    table["y"] = (rng.random(600) < 1 / (1 + np.exp(1.5 - 1.5 * table["a"] - table["b"]))).astype(int)
    table["c"] += shift
    file = folder / f"day{number:02d}.parquet"
    table.to_parquet(file)
    return file


def night(folder: Path, new: Path | None = None, **changes: object) -> Path:
    """Write the configuration of a night, and return it."""
    source = {"source": f"{folder}/day*.parquet", "format": "parquet", "label": "y", "positive": 1}
    content = {
        "store": f"{folder}/store", "window": 2, "held_out": 1, "margin": 0.05, "scores": f"{folder}/scores",
        "train": {
            "name": "night", "data": {"source": source, "scale": "standard"}, "output": f"{folder}/runs",
            "model": {"lam": 0.01, "tol": 0.01}, "cluster": {"kind": "none"},
        },
    } | changes  # fmt: skip
    if new is not None:
        content["new"] = {"source": {"source": str(new), "format": "parquet"}}
    file = folder / "night.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file
