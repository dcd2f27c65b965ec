"""Models with random weights on tables of numbers, categories and dates, and their scores as `aucdist score` has them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from support.linear_models import linear_model

from aucdist.batch_scoring import to_score
from aucdist.data.block import each_of
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source, parse_source
from aucdist.engine.blocks import LocalBlocks
from aucdist.linear_model import LinearModel
from aucdist.maps import expander_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "how-to" / "take-elsewhere.md"
READER = PAGE.with_name("json-description.md")
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTES, DROP, TAG = 'o\'clock "now"', '"; DROP TABLE rows; --', "<b>'; --"
SOURCE = {
    "format": "csv", "label": "clicked", "positive": "yes", "missing": "keep", "unknown": "ignore",
    "categorical": [DROP, "browser"], "dates": {"seen": ["year", "month", "weekday", "hour", "days"]},
}  # fmt: skip


def table(n: int, seed: int, *, missing: bool = True) -> pd.DataFrame:
    """Return rows with columns whose names and categories have quotes, and with many equal numbers."""
    r = np.random.default_rng(seed)
    seen = pd.Timestamp("2023-12-30") + pd.to_timedelta(r.integers(0, 800 * 1440, n), unit="min")
    rows = pd.DataFrame({
        "age": r.integers(18, 40, n) / 2, QUOTES: np.exp(3 * r.normal(size=n)), "seen": seen.astype(str),
        DROP: r.choice(["a", TAG, "line, two", "ü"], n), "browser": r.choice(["chrome", "Firefox", "17"], n),
        "clicked": np.where(r.random(n) < 0.4, "yes", "no"),
    })  # fmt: skip
    if missing:
        for column in ("age", QUOTES, "seen", DROP):
            rows.loc[r.random(n) < 0.15, column] = np.nan
    return rows


def model_of(
    folder: Path, rows: pd.DataFrame, *, features: Any = None, impute: str = "median", scale: str = "standard",
    log1p: Sequence[str] | None = None, probability: Any = None, source: Mapping[str, Any] = SOURCE, seed: int = 0,
) -> LinearModel:  # fmt: skip
    """Return a model with random weights, whose preprocessing and feature map are fitted to the rows."""
    file = folder / "training.csv"
    rows.to_csv(file, index=False)
    given = Source(source=str(file), **source)
    data = read(given)
    names, schema = data.schema.feature_names, data.schema
    wanted = None if log1p is None else list(log1p)
    preprocessor = fit_preprocessor(
        each_of([data.block]), names, log1p=wanted, scale=scale, categories=schema.categories, impute=impute
    )
    expander = expander_of(features)
    fitted = None if expander is None else expander.fit_blocks(LocalBlocks([preprocessor.transform(data.block)]))
    coef = np.random.default_rng(seed).normal(size=len(names) if fitted is None else fitted.n_features_out)
    return linear_model(coef, 0.3, schema, preprocessor, {}, probability, fitted, given.scoring_keys())


def scores(model: LinearModel, file: Path) -> np.ndarray:
    """Return the scores of the rows of a CSV file, read as the model says."""
    source = parse_source({"source": str(file), "format": "csv"}, file.name, labelled=False)
    reader = open_reader(to_score(source, model), schema=model.schema, labelled=False)
    return np.concatenate([model.decision_function(reader.read(i).X) for i in range(len(reader.rows))])


def page_reader() -> dict[str, Any]:
    """Return the functions of the reader that the page on the JSON description prints."""
    (code,) = [code for code in BLOCKS.findall(READER.read_text(encoding="utf-8")) if "def score_of" in code]
    names: dict[str, Any] = {}
    exec(compile(code.partition("\nwith open")[0], PAGE.name, "exec"), names)
    return names
