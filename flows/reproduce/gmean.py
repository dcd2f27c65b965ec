"""The kind `g-mean`: G-means and seconds of systems that may sample the rows first, compared with printed figures."""

import itertools
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.svm import SVC

from aucdist.data.block import Block
from aucdist.engine.blocks import block_seed
from aucdist.metrics import g_mean_score
from aucdist.sampling import MWMOTE, DistanceUnderSampler
from flows.config.base import Strict
from flows.reproduce import kind
from flows.reproduce.kind import (
    DataSet,
    Folds,
    Grid,
    GridSystem,
    Params,
    ProtocolKind,
    Result,
    Results,
    Task,
    by_system,
    choose_once,
    fit_on_fold,
    n_ahead,
    rankings,
    results_of,
    train_and_test,
)
from flows.reproduce.page import NOT_RUN, Curve, Figure, Report

Measure = Literal["train", "test", "seconds"]
MEASURES: tuple[Measure, ...] = ("train", "test", "seconds")

SAMPLERS: dict[str, Callable[[int], Any]] = {
    "none": lambda seed: None,
    "u": lambda seed: DistanceUnderSampler(random_state=seed),
    "u-svc": lambda seed: DistanceUnderSampler(svm=SVC(C=10.0, class_weight="balanced"), random_state=seed),
    "mwmote": lambda seed: MWMOTE(random_state=seed),
}
"""The samplers of the YAML: none; U1 or U2 with the default hyperplane or that of a Gaussian SVM; MWMOTE."""


class Target(Strict):
    """A printed figure: a G-mean in per cent, or seconds."""

    dataset: str
    system: str
    measure: Measure
    value: float


class Claim(kind.Claim):
    """A claim about some of the measures."""

    measures: list[Measure] = Field(min_length=1)


class SampledSystem(GridSystem):
    """A system, its samplers and its grid."""

    samplers: list[str] = Field(default=[])
    """Each with every point of the grid; only for MarginMeanClassifier"""
    rule: Literal["zero", "predict"] = "predict"
    """`zero`: the sign of the margin, as in the paper. `predict`: the threshold of the estimator"""

    def points(self, otherwise: Grid | None = None) -> list[Params]:
        """Return the points of the grid, each with the name of each sampler."""
        points = super().points(otherwise)
        return [point | {"sampler": name} for name in self.samplers for point in points] if self.samplers else points


class ChosenOnce(Folds):
    """Cross-validation; folds of the first training part choose the parameters for all folds."""

    inner_folds: int = Field(default=3, ge=2)


FIGURES = ("paper", "here", "deviation", "difference")
COLUMNS = ("dataset", "system", "measure", *FIGURES, "chosen")
"""The columns of the cells, which are the lines of the CSV: the mean over the folds, of seconds the median, and its deviation."""


def reached(cells: Any) -> Any:
    """Return whether our figures are at least as good as the printed ones; False where one of them is missing."""
    return np.where(cells["measure"] == "seconds", cells["difference"] <= 0.0, cells["difference"] >= 0.0)


class GMeans(ProtocolKind):
    """G-means and seconds over folds, at parameters chosen within the first training part."""

    kind: Literal["g-mean"]
    accuracy: str
    """The printed table of the G-means"""
    times: str
    """The printed table of the seconds"""
    figures: str
    """The printed figures of the training and of the test G-means"""
    systems: dict[str, SampledSystem]
    datasets: dict[str, DataSet]
    protocol: ChosenOnce = Field(default_factory=ChosenOnce)
    choice_rows: int | None = Field(default=None, ge=10)
    """At most so many rows of the first training part choose the parameters"""
    targets: list[Target] = Field(default=[])
    """Or a CSV beside this file with these columns"""
    claims: list[Claim] = Field(default=[])
    """Statements of the paper; the page counts where they hold"""

    def task_of(self, dataset: str, system: SampledSystem) -> Task:
        """Return estimator, points and rule of a system."""
        own = {"estimator": system.model.estimator, "points": system.points(), "rule": system.rule}
        return own | {"choice_rows": self.choice_rows}

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the G-means at the chosen point of the grid, and the seconds of its fit and of scoring both parts."""
        chosen = choose_once(task, _g_mean_of_point)
        train, test = train_and_test(task)
        start = time.perf_counter()
        model = _fit(task, task["points"][chosen], train)
        scores = {"train": _g_mean(task, model, train), "test": _g_mean(task, model, test)}
        return scores | {"seconds": time.perf_counter() - start, "chosen": chosen}

    def report(self, results: Results) -> Report:
        """Return the tables, the figures, and where each system reaches the print and each claim holds."""
        lines = self.cells(results)
        by_measure = {measure: lines[lines["measure"] == measure] for measure in MEASURES}
        titles = {
            "train": f"{self.accuracy}, training",
            "test": f"{self.accuracy}, test",
            "seconds": f"{self.times}, seconds",
        }
        tables = []
        for measure, measured in by_measure.items():
            number = ".3f" if measure == "seconds" else ".1f"
            highlight = np.select([reached(measured), measured["difference"].notna()], ["better", "miss"], "")
            cell = f"{{here:{number}}}", "paper {paper:g}", f"{{difference:+{number}}}", "{chosen}"
            tables.append(self.page_table(titles[measure], measured.assign(highlight=highlight), *cell))
        figures = [self._figure(by_measure[measure], measure) for measure in ("train", "test")]
        counts = {
            "against_print": count_reached(by_measure["test"]),
            "in_this_run": rankings(by_system(by_measure["test"], "here", self.systems), higher_is_better=True),
            "claims": {claim.text: count_leads(claim, lines) for claim in self.claims},
        }
        return Report(self.title, tables, figures, lines, counts)

    def cells(self, results: Results) -> pd.DataFrame:
        """Return the cells in the order of the configuration, whether they were run or not."""
        printed = {(t.dataset, t.system, t.measure): t.value for t in self.targets}
        cells = []
        for dataset, (system, settings) in itertools.product(self.datasets, self.systems.items()):
            runs = results_of(results, dataset, system)
            for measure in MEASURES:
                cell: dict[str, Any] = {"dataset": dataset, "system": system, "measure": measure, "chosen": ""}
                cell["paper"] = printed.get((dataset, system, measure))
                if runs:
                    values = np.array([run[measure] for run in runs]) * (1.0 if measure == "seconds" else 100.0)
                    # The first fold may include the compilation of kernels, so the median stands for the seconds.
                    cell["here"] = np.median(values) if measure == "seconds" else values.mean()
                    cell["deviation"] = values.std(ddof=1) if len(values) > 1 else None
                    point = settings.points()[runs[0]["chosen"]]
                    varied = [f"{name} {point[name]:g}" for name in settings.grid]
                    cell["chosen"] = ", ".join([point["sampler"], *varied] if len(settings.samplers) > 1 else varied)
                cells.append(cell)
        table = pd.DataFrame(cells, columns=COLUMNS).astype(dict.fromkeys(FIGURES, float))
        return table.assign(difference=table["here"] - table["paper"])

    def _figure(self, lines: pd.DataFrame, measure: str) -> Figure:
        curves = []
        for system in self.systems:
            values = lines["here"][lines["system"] == system].to_numpy()
            (run,) = np.nonzero(~np.isnan(values))
            if len(run):
                curves.append(Curve(system, run + 1.0, values[run]))
        xlabel = "Data set, in the order of the table"
        return Figure(f"{self.figures}: {measure} G-mean", curves, xlabel, "G-mean, %")


def count_reached(test: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return, for each system with printed test G-means, how many it reaches and the cells below the printed ones."""
    best = test.groupby("dataset")["here"].transform("max")
    compared = test.assign(best_here=best, reached=reached(test)).dropna(subset="difference")
    return {
        str(system): {
            "compared": len(cells),
            "at_least_the_papers": int(cells["reached"].sum()),
            "below": cells[~cells["reached"]][["dataset", "paper", "here", "best_here"]].to_dict("records"),
        }
        for system, cells in compared.groupby("system", sort=False)
    }


def count_leads(claim: Claim, cells: pd.DataFrame) -> dict[str, str]:
    """Return, for each measure and rival, on how many data sets the claim holds, here and in print; a tie is no lead."""
    counts = {}
    for measure, rival in itertools.product(claim.measures, claim.than):
        measured, texts = cells[cells["measure"] == measure], []
        for source, where in (("here", "here"), ("paper", "in print")):
            values = by_system(measured, source, (claim.system, rival))
            ahead = n_ahead(values, claim.system, [rival], higher_is_better=measure != "seconds")
            texts += [f"{ahead} of {len(values)} {where}"] if len(values) else []
        counts[f"{measure}, {rival}"] = ", ".join(texts) or NOT_RUN
    return counts


def _g_mean_of_point(task: Task, point: Params, train: Block, validation: Block) -> float:
    return _g_mean(task, _fit(task, point, train), validation)


def _fit(task: Task, point: Params, train: Block) -> Any:
    if "sampler" in point:
        seed = block_seed(task["protocol"]["seed"], task["repeat"], 100 + task["fold"]) % 2**31
        point = point | {"sampler": SAMPLERS[point["sampler"]](seed)}
    return fit_on_fold(task, point, train)


def _g_mean(task: Task, model: Any, block: Block) -> float:
    scores = model.decision_function(block.X)
    if task["rule"] == "zero":
        scores = scores + model.margin_threshold_
    return float(g_mean_score(block.y, np.where(scores > 0, 1, -1)))
