"""Missing values from the file to the model and the scores: what stands in is learnt from the training rows alone."""

import numpy as np
import pytest

from aucdist.data.block import each_of
from aucdist.data.column_statistics import MEDIAN_ERROR
from aucdist.data.preprocess import fit_preprocessor
from aucdist.errors import InputError
from flows.config.data import DataConfig
from flows.rows.source import read_rows


@pytest.fixture
def config(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    cells = [["?" if rng.random() < 0.2 else f"{v:.6g}" for v in row] for row in rng.lognormal(size=(200, 3))]
    rows = "".join(f"{','.join(row)},{int(label)}\n" for row, label in zip(cells, y, strict=True))
    (tmp_path / "f.csv").write_text("a,b,c,y\n" + rows)

    def config(missing="keep", **options):
        source = {"source": str(tmp_path / "f.csv"), "format": "csv", "label": "y", "positive": 1, "missing": missing}
        return DataConfig(source=source, test={"fraction": 0.25}, **options)

    return config


@pytest.mark.parametrize(
    ("impute", "twin", "off"), [("mean", np.nanmean, 1e-13), ("median", np.nanmedian, MEDIAN_ERROR)]
)
def test_it_is_learnt_from_the_training_rows(config, impute, twin, off, monkeypatch):
    opened = read_rows(config(impute=impute))
    assert np.isfinite(opened.train.block.X).all()
    assert np.isfinite(opened.test.block.X).all()
    monkeypatch.setattr("flows.rows.rows.fit_preprocessor", lambda blocks, *_, **__: _kept(blocks))
    raw = read_rows(config(impute=impute))
    expected = twin(raw.train.block.X, axis=0)
    np.testing.assert_allclose(opened.preprocessor.fill, expected, rtol=off)
    for side in ("train", "test"):
        X = getattr(raw, side).block.X
        filled = np.where(np.isnan(X), opened.preprocessor.fill, X)
        assert np.array_equal(getattr(opened, side).block.X, filled)


class _kept:
    """A preprocessor that leaves everything as it is."""

    def __init__(self, blocks):
        self.blocks = blocks

    def transform(self, block):
        return block


def test_without_it_missing_values_are_refused_one_way_or_the_other(config):
    with pytest.raises(InputError, match=r"line \d+, column '.': the value is missing \('\?'\).*`missing: keep`"):
        read_rows(config(missing="refuse"))
    with pytest.raises(InputError, match=r"feature . of row \d+ \(from 0\) is missing; give `impute: mean`"):
        read_rows(config())


def test_it_goes_with_scaling(config):
    train = read_rows(config(impute="mean", log1p="numeric", scale="standard")).train.block
    np.testing.assert_allclose(train.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.X.std(axis=0), 1, rtol=1e-12)
    with pytest.raises(InputError, match="unknown impute"):
        fit_preprocessor(each_of([train]), ["a", "b", "c"], log1p=None, scale="none", categories={}, impute="guess")
