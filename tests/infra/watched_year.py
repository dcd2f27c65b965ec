"""Watch a year of 52 weekly batches without drift, and two weeks with one, of several data sets: false alarms, and what is found.

By hand: ``python tests/infra/watched_year.py --seeds 100 101 102``. A run trains a model, promotes it and watches every batch
with its labels, as ``aucdist watch`` does, with the limits of alarms that the library has.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from aucdist.data.storage.urls import data_root
from flows.config.loading import load_config
from flows.progress import RunObserver
from flows.promote import PromoteConfig, promote_run
from flows.train.config import TrainConfig
from flows.train.run import train
from flows.watch import WatchConfig, watch

WEEKS, TRAINING = 52, 8000
Batches = tuple[pd.DataFrame, list[pd.DataFrame], list[pd.DataFrame]]
"""Training rows, clean weeks, and weeks with drift."""


class Silent(RunObserver):
    """Nobody looks at the progress."""

    def on(self, event: str, facts: dict[str, object]) -> None:
        """Do nothing."""


def drawn(pool: pd.DataFrame, after: pd.DataFrame, rows: int, share: float, rng: np.random.Generator) -> Batches:
    """Draw training rows and weeks from one pool, and weeks of which a share comes from another one."""
    order = pool.iloc[rng.permutation(len(pool))]
    training, rest = order[:TRAINING], order[TRAINING:]
    weeks = [rest[i * rows : (i + 1) * rows] for i in range(WEEKS + 2)]
    assert len(weeks[-1]) == rows, "the pool is too small"
    changed = round(share * rows)
    other = after.iloc[rng.permutation(len(after))]
    drifted = [
        pd.concat([week[changed:], other[i * changed : (i + 1) * changed]]) for i, week in enumerate(weeks[WEEKS:])
    ]
    return training, weeks[:WEEKS], drifted


def covtype(rng: np.random.Generator) -> Batches:
    """Forest cover of one wilderness area, and then of another one, too. Positive: Lodgepole Pine."""
    table = pd.read_csv(Path(data_root()) / "uci" / "covtype-ramp-test.csv.xz")
    label = table.pop(table.columns[-1])
    area = table.filter(regex="(?i)wilderness").to_numpy().argmax(axis=1)
    table = table.drop(columns=table.filter(regex="(?i)wilderness").columns).assign(y=(label == 2).astype(int))
    counts = np.bincount(area)
    first, second = np.argsort(-counts)[:2]
    return drawn(table[area == first], table[area == second], 500, 0.5, rng)


def kdd(rng: np.random.Generator) -> Batches:
    """Connections of the first half of the file, and then of the second half, too. Positive: normal ones."""
    table = pd.read_csv(Path(data_root()) / "uci" / "kddcup.data_10_percent.xz", header=None)
    table.columns = [f"c{j}" for j in range(table.shape[1])]
    label = table.pop(table.columns[-1])
    table = table.assign(y=(label == "normal.").astype(int))
    half = len(table) // 2
    return drawn(table[:half], table[half:], 500, 0.5, rng)


def simulated(change: Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]) -> Callable[..., Batches]:
    """Return batches of a simulated population, the last two of which are changed."""

    def make(rng: np.random.Generator) -> Batches:
        n = TRAINING + (WEEKS + 2) * 500
        table = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
        table["town"] = np.array(["north", "south", "west", "east"])[rng.choice(4, n, p=[0.5, 0.3, 0.19, 0.01])]
        logit = 1.5 * table["a"] + table["b"] - 0.7 * table["c"] + (table["town"] == "west") - 2.0
        table["y"] = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
        training, weeks, drifted = drawn(table, table[:0], 500, 0.0, rng)
        return training, weeks, [change(week.copy(), rng) for week in drifted]

    return make


def shifted(week: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the week with one feature half a standard deviation higher."""
    return week.assign(e=week["e"] + 0.5)


def new_category(week: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the week with a town that training did not have, in one row of ten."""
    return week.assign(town=np.where(rng.random(len(week)) < 0.1, "island", week["town"]))


def new_concept(week: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the week with labels that depend on the features in another way, and features as they were."""
    logit = 1.5 * week["d"] + week["e"] - 2.0
    return week.assign(y=(rng.random(len(week)) < 1 / (1 + np.exp(-logit))).astype(int))


SETS: dict[str, Callable[[np.random.Generator], Batches]] = {
    "covtype by area": covtype, "kdd by time": kdd, "simulated shift": simulated(shifted),
    "simulated category": simulated(new_category), "simulated concept": simulated(new_concept),
}  # fmt: skip


def year(name: str, seed: int, folder: Path) -> Iterator[dict[str, object]]:
    """Train, promote and watch; yield what each batch raised."""
    training, weeks, drifted = SETS[name](np.random.default_rng(seed))
    store = store_of(training, folder)
    for number, (batch, planted) in enumerate([(w, False) for w in weeks] + [(w, True) for w in drifted], 1):
        file = folder / f"week{number:02d}.parquet"
        batch.drop(columns="y").to_parquet(file, index=False)
        labels = folder / "labels.parquet"
        pd.DataFrame({"row_id": range(len(batch)), "y": batch["y"].to_numpy()}).to_parquet(labels)
        source = {"source": {"source": str(file), "format": "parquet"}}
        config = WatchConfig.model_validate(
            {"model": store, "data": source, "labels": str(labels), "batch": file.stem},
        )
        alarms = watch(config, Silent())["alarms"]
        named = [f"{alarm['what']} {alarm['column'] or ''}".strip() for alarm in alarms]
        yield {
            "set": name,
            "seed": seed,
            "week": number,
            "drift": planted,
            "alarms": len(alarms),
            "named": "; ".join(named[:6]),
        }


def store_of(training: pd.DataFrame, folder: Path) -> str:
    """Train a model and promote it; return the store."""
    training.to_parquet(folder / "training.parquet", index=False)
    text = [c for c in training if not pd.api.types.is_numeric_dtype(training[c])]
    source = {
        "source": str(folder / "training.parquet"), "format": "parquet", "label": "y", "positive": 1, "categorical": text,
        "unknown": "ignore",
    }  # fmt: skip
    data = json.dumps({"source": source, "test": {"fraction": 0.3, "seed": 0}, "scale": "standard"})
    model = json.dumps({"lam": 0.001, "tol": 0.05, "calibration": "logit"})
    settings = ["cluster=none", f"data={data}", f"model={model}", "operating_point={fpr: 0.1}"]
    result = train(load_config(TrainConfig, "train", "digits", settings, str(folder / "runs")), Silent())
    promote_run(PromoteConfig(run=str(result["run"]), store=str(folder / "store")))
    return str(folder / "store")


def main() -> None:
    """Run years, print a line for each, and write what every batch raised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--output", type=Path, help="a CSV file with a row for each year")
    parser.add_argument("--keep", type=Path, help="a folder in which the last year stays, with its page")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in options.sets:
        for seed in options.seeds:
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) if options.keep is None else options.keep / f"{name.replace(' ', '-')}-{seed}"
                place.mkdir(parents=True, exist_ok=True)
                weeks = list(year(name, seed, place))
            clean, late = ([row for row in weeks if row["drift"] is planted] for planted in (False, True))
            false = sum(bool(row["alarms"]) for row in clean)
            first = next((i for i, row in enumerate(late, 1) if row["alarms"]), None)
            rows.append(
                {
                    "set": name,
                    "seed": seed,
                    "weeks": len(clean),
                    "false_alarms": false,
                    "found_in_week": first,
                    "named": late[0]["named"],
                }
            )
            print(rows[-1], flush=True)
    if options.output is not None:
        pd.DataFrame(rows).to_csv(options.output, index=False)


if __name__ == "__main__":
    main()
