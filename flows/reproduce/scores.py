"""The kind `scores`: metrics of systems over folds or splits.

They are compared with each other and with the printed figures of a paper.
"""

import functools
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.stats import wilcoxon
from sklearn.svm import SVC

from aucdist.data.block import Block
from aucdist.engine.blocks import block_seed
from aucdist.errors import Json
from aucdist.metrics import g_mean_score
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import brier, calibration_loss
from aucdist.sampling import MWMOTE, DistanceUnderSampler
from aucdist.selection import fold_numbers
from flows.config.loading import Strict
from flows.reproduce import kind
from flows.reproduce.kind import (
    DataSet,
    Grid,
    ProtocolKind,
    RepeatedFolds,
    Result,
    Results,
    Splits,
    System,
    Task,
    auc_on,
    by_system,
    fit_on_fold,
    n_ahead,
    rankings,
    ranks,
    results_of,
    train_and_test,
)
from flows.reproduce.page import NOT_RUN, Curve, ExperimentReport, Figure, PageTable

Measure = Literal["auc", "train", "test", "seconds", "brier", "calibration"]
"""`train` and `test` are G-means in per cent; `seconds` are those of the fit and of scoring; the others are of the test rows."""
G_MEANS: tuple[Measure, ...] = ("train", "test")
LOWER_IS_BETTER = ("seconds", "brier", "calibration")
DIGITS = {"train": 1, "test": 1, "seconds": 3}
"""The number of decimals on the page. Other metrics have four."""

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"
COUNTED_VERDICTS = {
    "within_1": WITHIN_1, "better_by_more_than_1": BETTER, "below_by_1_to_2": WITHIN_2, "below_by_more_than_2": MISS,
}  # fmt: skip
"""The verdicts that the page counts, by the names of the counts."""
HIGHLIGHTS = {BETTER: "better", WITHIN_2: "below", MISS: "miss"}
PRINT_ROUNDING = 1e-9
"""The rounding error that is allowed beyond the tolerance, because subtracting printed figures rounds."""
MATCHED = "at_least_print_minus_tolerance"

SAMPLERS: dict[str, Callable[[int], Any]] = {
    "none": lambda seed: None,
    "u": lambda seed: DistanceUnderSampler(random_state=seed),
    "u-svc": lambda seed: DistanceUnderSampler(svm=SVC(C=10.0, class_weight="balanced"), random_state=seed),
    "mwmote": lambda seed: MWMOTE(random_state=seed),
}
"""The samplers of MarginMeanClassifier: none; U1 or U2 with the default hyperplane or that of a Gaussian SVM; MWMOTE."""
SMOTE = "smote"
"""The name of the sampler that balances the classes before any estimator."""

SCORE_FIGURES = ("paper", "paper_deviation", "mean", "deviation", "difference", "in_deviations", "rank", "p_value")
SCORE_COLUMNS = ("measure", "dataset", "system", *SCORE_FIGURES, "verdict", "n_runs", "chosen")
"""The columns of the CSV.

`paper`, `paper_deviation`: as printed.
`mean`, `deviation`: over the folds or splits; of seconds the median.
`difference`: ours minus the paper's.
`in_deviations`: how much better ours is, in units of the paper's deviation; of ours where it prints none.
`rank`: among the systems, where all were run on this data set; equal means share their rank.
`p_value`: over random splits, of the two-sided Wilcoxon test against a best system.
`verdict`: how ours and the paper's compare; empty where one is missing.
`chosen`: the chosen parameters, and how often each was chosen where every fold chooses its own.
"""


class PrintedFigure(Strict):
    """A printed figure."""

    dataset: str
    system: str
    measure: Measure = "auc"
    value: float
    deviation: float | None = None


class MetricClaim(kind.Claim):
    """A claim about some of the metrics."""

    measures: list[Measure] = Field(min_length=1)


class ScoredDataSet(DataSet):
    """A row of the tables."""

    group: str | None = None
    """The data set of which this is one of several random draws. The page has one row for all draws."""


class ScoredSystem(System):
    """A system, its samplers and its grid."""

    samplers: list[str] = Field(default=[])
    """The samplers. Each is combined with every point of the grid. All but SMOTE need MarginMeanClassifier."""
    rule: Literal["zero", "predict"] = "predict"
    """`zero`: the sign of the margin, as in paper 004. `predict`: the threshold of the estimator."""

    def points(self, otherwise: Grid | None = None) -> list[Json]:
        """Return the points of the grid. Each is combined with the name of each sampler."""
        points = super().points(otherwise)
        return [point | {"sampler": name} for name in self.samplers for point in points] if self.samplers else points


class Choice(RepeatedFolds):
    """Cross-validation, and how the parameters are chosen."""

    choose: Literal["best", "cv", "once"] = "best"
    """`best`: the point of the grid with the highest mean over the test folds themselves, which is optimistic. `cv`: for each
    fold, the best over inner folds of its training part. `once`: for all folds, the best over inner folds of the first
    training part."""
    inner_folds: int = Field(default=5, ge=2)
    """The number of inner folds, for `cv` and `once`."""


class Scores(ProtocolKind):
    """Means over folds or splits at the chosen point of a grid. There is a table for each metric."""

    kind: Literal["scores"]
    measures: dict[Measure, str] = Field(default={"auc": ""})
    """The measures, each with the heading of its table. The G-mean of the test rows chooses the parameters if it is among
    them, and otherwise the first measure does."""
    systems: dict[str, ScoredSystem]
    """The systems. The grid of a system replaces that of the experiment."""
    datasets: dict[str, ScoredDataSet]
    protocol: Choice | Splits = Field(default_factory=Choice)
    grid: Grid = Field(default={})
    choice_rows: int | None = Field(default=None, ge=10)
    """The largest number of rows of the first training part that choose the parameters."""
    targets: list[PrintedFigure] = Field(default=[])
    """The printed figures: a list, or the name of a CSV file next to this file with the same columns."""
    tolerance: float | None = Field(default=None, ge=0)
    """The page states for each cell whether it is at least the printed figure minus this."""
    claims: list[MetricClaim] = Field(default=[])
    """Statements of the paper. The page counts how often each holds."""
    figure: str | None = None
    """The title of the figures. With `choose: best` they show the mean at every point of a grid of one parameter, and
    otherwise the G-means of all data sets."""

    @property
    def metric(self) -> Measure:
        """The metric that chooses the parameters."""
        return "test" if "test" in self.measures else next(iter(self.measures))

    def packages(self) -> set[str]:
        """Return the name of SMOTE's package if a system uses SMOTE."""
        return {"imblearn"} if any(SMOTE in system.samplers for system in self.systems.values()) else set()

    def task_of(self, dataset: str, system: ScoredSystem) -> Task:
        """Return the estimator, the points and the rule of a system, and its metrics."""
        return {
            "estimator": system.model.estimator, "points": system.points(self.grid), "rule": system.rule,
            "measures": list(self.measures), "worth": self.metric, "choice_rows": self.choice_rows,
        }  # fmt: skip

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the points of the grid that were fitted, and every measure for each of them.

        The points are the chosen one, or all points if the rule is `best`.
        """
        train, test = train_and_test(task)
        points, choice = task["points"], task["protocol"].get("choose")
        if choice == "best":
            chosen = list(range(len(points)))
        elif len(points) == 1:
            chosen = [0]
        elif choice == "cv":
            chosen = [_choose(task, train)]
        else:
            chosen = [_choose_on_first_part(json.dumps(task | {"repeat": 0, "fold": 0}))]
        measured = []
        for i in chosen:
            start = time.perf_counter()
            model = _fit(task, points[i], train)
            rows = {name: train if name == "train" else test for name in task["measures"] if name != "seconds"}
            values = {name: _value(task, name, model, block) for name, block in rows.items()}
            measured.append(values | {"seconds": time.perf_counter() - start})
        return {"chosen": chosen} | {name: [values[name] for values in measured] for name in task["measures"]}

    def report(self, results: Results) -> ExperimentReport:
        """Return the tables and figures, the number of cells that agree with the paper, ranks, and where each claim holds."""
        lines, shown = self.lines(results), [MATCHED] if self.tolerance is not None else []
        tables: list[PageTable] = []
        counts: Json = {}
        for measure, title in self.measures.items():
            measured = lines[lines["measure"] == measure]
            n = f".{DIGITS.get(measure, 4)}f"
            cell = (
                f"{{mean:{n}}}", "{mark}", f"± {{deviation:{n}}}", f"{{least:{n}}} to {{most:{n}}}", f"paper {{paper:{n}}}",
                f"± {{paper_deviation:{n}}}", "{in_deviations:+.2f} deviations",
                f"at least the print - {self.tolerance:g}: {{{MATCHED}}}" if shown else "{no}", "{chosen}",
            )  # fmt: skip
            # The means over the draws of each data set and their range are shown beside the one printed figure.
            groups = measured["dataset"].map({name: dataset.group for name, dataset in self.datasets.items()})
            draws = measured.assign(dataset=groups + ", all draws").groupby(["dataset", "system"], sort=False)
            means = draws.agg(
                mean=("mean", "mean"), least=("mean", "min"), most=("mean", "max"), paper=("paper", "first")
            )
            with_draws = pd.concat([measured, means.reset_index()])
            table = self.page_table(title, with_draws, *cell)
            tables.append(replace(table, rows=with_draws["dataset"].unique()))
            counts[measure] = self._counts(measure, measured)
        if self.claims:
            counts["claims"] = {claim.text: count_leads(claim, lines) for claim in self.claims}
        figures = [] if self.figure is None else list(self._figures(lines, results))
        return ExperimentReport(self.title, tables, figures, lines[[*SCORE_COLUMNS, *shown]], counts)

    def lines(self, results: Results) -> pd.DataFrame:
        """Return a line for each measure, data set and system in the order of the configuration, whether it was run or not."""
        printed = {(target.measure, target.dataset, target.system): target for target in self.targets}
        cells = []
        for measure, dataset in itertools.product(self.measures, self.datasets):
            values: dict[str, np.ndarray] = {}
            for system, settings in self.systems.items():
                cell = {"measure": measure, "dataset": dataset, "system": system, "n_runs": 0, "chosen": "", "mark": ""}
                if target := printed.get((measure, dataset, system)):
                    cell |= {"paper": target.value, "paper_deviation": target.deviation}
                if runs := results_of(results, dataset, system):
                    best = int(np.argmax(np.mean([run[self.metric] for run in runs], axis=0)))
                    folds = np.array([run[measure][best] for run in runs]) * (100.0 if measure in G_MEANS else 1.0)
                    # Medians of seconds are used, because the first fold may include the compilation of kernels.
                    mean = np.median(folds) if measure == "seconds" else folds.mean()
                    cell |= {
                        "mean": mean, "deviation": folds.std(ddof=1) if len(runs) > 1 else None, "n_runs": len(runs),
                        "chosen": self._texts(settings, [run["chosen"][best] for run in runs]),
                    }  # fmt: skip
                    values[system] = folds
                cells.append(cell)
            if len(values) == len(self.systems):
                ranked, samples = cells[-len(values) :], list(values.values())
                means = pd.DataFrame([[cell["mean"] for cell in ranked]])
                rank = ranks(means, higher_is_better=measure not in LOWER_IS_BETTER).to_numpy()[0]
                for k, cell in enumerate(ranked):
                    cell["rank"] = rank[k]
                    if isinstance(self.protocol, Splits):
                        cell["p_value"] = p = p_value(samples[k], samples[rank.argmin()])
                        if rank[k] > rank.min():  # the line is marked if the system is significantly behind the best
                            cell["mark"] = "**" if p < 0.05 else "*" if p < 0.1 else ""
        lines = with_verdicts(
            pd.DataFrame(cells, columns=[*SCORE_COLUMNS, "mark"]).astype(dict.fromkeys(SCORE_FIGURES, float))
        )
        if self.tolerance is not None:
            lines[MATCHED] = np.select([reaches(lines, self.tolerance), lines["difference"].notna()], ["yes", "no"], "")
        # The background of a cell depends on the printed figure. Without printed figures, it depends on the best system.
        by_print = lines["verdict"].map(HIGHLIGHTS).fillna("")
        is_best = lines["rank"] == lines.groupby(["measure", "dataset"])["rank"].transform("min")
        return lines.assign(highlight=by_print if self.targets else np.where(is_best, "better", ""))

    def _texts(self, system: ScoredSystem, chosen: list[int]) -> str:
        points, varied = system.points(self.grid), list(system.grid or self.grid)
        templates = ["{sampler}"] * (len(system.samplers) > 1) + [f"{name}={{{name}:g}}" for name in varied]
        texts = Counter(", ".join(templates).format_map(points[i]) for i in chosen)
        return "; ".join(f"{n} times {text}" if len(texts) > 1 else text for text, n in texts.most_common())

    def _counts(self, measure: Measure, lines: pd.DataFrame) -> Json:
        """Return how many cells of a metric agree with the paper, and the ranks of the systems."""
        means, counts = by_system(lines, "mean", self.systems), {}
        if lines["paper"].notna().any():
            counts["against_print"] = count_agreement(lines)
            if self.tolerance is not None:
                compared = lines[lines["difference"].notna()]
                tallies = (compared[MATCHED] == "yes").groupby(compared["system"], sort=False).agg(["sum", "size"])
                texts = {system: f"{n} of {size}" for system, n, size in tallies.itertuples()}
                counts[MATCHED] = {"tolerance": self.tolerance, **texts}
        counts["in_this_run"] = rankings(means, higher_is_better=measure not in LOWER_IS_BETTER)
        if isinstance(self.protocol, Splits):
            n_marked = lines["system"][lines["mark"] != ""].value_counts().reindex(list(self.systems), fill_value=0)
            counts["in_this_run"]["significantly_behind"] = n_marked.to_dict()
        return counts

    def _figures(self, lines: pd.DataFrame, results: Results) -> Iterator[Figure]:
        if getattr(self.protocol, "choose", "") == "best":
            ((parameter, values),) = self.grid.items()
            for dataset in self.datasets:
                curves = [
                    Curve(system, np.array(values, dtype=float), np.mean([run[self.metric] for run in runs], axis=0))
                    for system in self.systems
                    if (runs := results_of(results, dataset, system))
                ]
                if curves:
                    yield Figure(f"{self.figure}: {dataset}", curves, parameter, "Test AUC", log_x=True)
            return
        for measure in G_MEANS:
            curves = []
            for system in self.systems:
                percents = lines["mean"][(lines["measure"] == measure) & (lines["system"] == system)].to_numpy()
                (run,) = np.nonzero(~np.isnan(percents))
                if len(run):
                    curves.append(Curve(system, run + 1.0, percents[run]))
            yield Figure(f"{self.figure}: {measure} G-mean", curves, "Data set, in the order of the table", "G-mean, %")


def with_verdicts(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the lines with their differences from the printed figures, and verdicts."""
    difference = lines["mean"] - lines["paper"]
    unit = lines["paper_deviation"].fillna(lines["deviation"])
    relative = _sign(lines) * difference / unit.where(unit > 0.0)
    verdict = np.select(
        [relative > 1, relative >= -1, relative >= -2, relative < -2], [BETTER, WITHIN_1, WITHIN_2, MISS], ""
    )
    return lines.assign(difference=difference, in_deviations=relative, verdict=verdict)


def reaches(lines: Any, tolerance: float) -> Any:
    """Return whether our figures are at least the printed ones minus a tolerance. It is False if one of them is missing."""
    return _sign(lines) * lines["difference"] >= -tolerance - PRINT_ROUNDING


def _sign(lines: Any) -> np.ndarray:
    return np.where(np.isin(lines["measure"], LOWER_IS_BETTER), -1.0, 1.0)


def count_agreement(lines: pd.DataFrame) -> Json:
    """Return the number of cells that agree with the paper, and the cells that are below it."""
    verdict = lines["verdict"]
    below = lines[verdict.isin([MISS, WITHIN_2])].sort_values("in_deviations", kind="stable")
    return {
        "compared": int((verdict != "").sum()),
        **{key: int((verdict == value).sum()) for key, value in COUNTED_VERDICTS.items()},
        "below": below[["dataset", "system", "paper", "mean", "in_deviations"]].to_dict("records"),
    }


def count_leads(claim: MetricClaim, lines: pd.DataFrame) -> Mapping[str, str]:
    """Return for each metric and rival the number of data sets on which the claim holds, here and in print.

    A tie does not count as a lead.
    """
    counts = {}
    for measure, rival in itertools.product(claim.measures, claim.than):
        measured, texts = lines[lines["measure"] == measure], []
        for source, where in (("mean", "here"), ("paper", "in print")):
            values = by_system(measured, source, (claim.system, rival))
            ahead = n_ahead(values, claim.system, [rival], higher_is_better=measure not in LOWER_IS_BETTER)
            texts += [f"{ahead} of {len(values)} {where}"] if len(values) else []
        counts[f"{measure}, {rival}"] = ", ".join(texts) or NOT_RUN
    return counts


def p_value(values: Any, best: Any) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test. It is 1 if no pair differs."""
    if not (values != best).any():
        return 1.0
    return float(wilcoxon(values, best, method="approx" if (values == best).any() else "auto").pvalue)


# ---- the tasks --------------------------------------------------------------------------------------------------------


def _choose(task: Task, train: Block) -> int:
    """Return the point of the grid with the best mean over inner folds of the training rows."""
    points, protocol = task["points"], task["protocol"]
    seed = block_seed(protocol["seed"], task["repeat"], 2 + task["fold"])
    fold = fold_numbers(train.row_id, train.y, protocol["inner_folds"], seed)
    totals = np.zeros(len(points))
    for number in range(protocol["inner_folds"]):
        inner, validation = train.take(fold != number), train.take(fold == number)
        totals += [_value(task, task["worth"], _fit(task, point, inner), validation) for point in points]
    return int(np.argmax(totals))


@functools.lru_cache(maxsize=64)
def _choose_on_first_part(first_task: str) -> int:
    """Return the choice on at most `choice_rows` rows of the first training part.

    It is made once for all folds of a system on a data set.
    """
    task = json.loads(first_task)
    train, _ = train_and_test(task)
    return _choose(task, train.take(np.arange(train.n_samples)[: task["choice_rows"]]))  # the rows are in random order


def _fit(task: Task, point: Json, train: Block) -> Any:
    protocol = task["protocol"]
    seeds = [block_seed(protocol["seed"], task["repeat"], k) % 2**31 for k in (1, 100 + task["fold"])]
    if point.get("sampler") == SMOTE:
        train = oversample(train, seeds[0])
        point = {name: value for name, value in point.items() if name != "sampler"}
    elif "sampler" in point:
        point = point | {"sampler": SAMPLERS[point["sampler"]](seeds[1])}
    if "penalty" in protocol:
        point = point | {"lam": protocol["penalty"] / train.n_samples}
    return fit_on_fold(task, point, train)


def _value(task: Task, measure: Measure, model: Any, rows: Block) -> float:
    if measure == "auc":
        return auc_on(model, rows)
    if measure in G_MEANS:
        scores = model.decision_function(rows.X)
        if task["rule"] == "zero":
            scores = scores + model.margin_threshold_
        return float(g_mean_score(rows.y, np.where(scores > 0, 1, -1)))
    probabilities = ScoreCounts.from_scores(rows.y, model.predict_proba(rows.X)[:, 1])
    return brier(probabilities) if measure == "brier" else calibration_loss(probabilities)


def oversample(train: Block, seed: int) -> Block:
    """Return the rows after SMOTE has oversampled the smaller class to the size of the larger one.

    SMOTE uses 5 neighbours, or fewer if the smaller class has fewer.
    """
    from imblearn.over_sampling import SMOTE

    n_minority = int(min((train.y > 0).sum(), (train.y < 0).sum()))
    sampler = SMOTE(sampling_strategy=1.0, k_neighbors=min(5, n_minority - 1), random_state=seed)
    X, y = sampler.fit_resample(np.asarray(train.X), train.y)
    return Block.of(X, y)
