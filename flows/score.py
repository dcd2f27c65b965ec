"""The command `score`. Its stages are plain functions here, and tasks in `flows.orchestration.flows`."""

import functools
from typing import Annotated

from aucdist.drift.leaks import MANY_KNOWN
from aucdist.errors import Json, counted
from aucdist.model import batch_scoring
from aucdist.text import ends_text, number_text
from flows.compute.clusters import started
from flows.config.cluster import ClusterOption, S3Option
from flows.config.data import UnlabelledRef, source_of
from flows.config.loading import Cli, CopyOption, FolderArgument, Natural, PathOrUrl
from flows.progress import RunObserver


class ScoreConfig(UnlabelledRef):
    """Rows to be scored by a model."""

    model: FolderArgument
    """A run folder, a model, a model store, or a version in a store, such as store@3: a folder or URL."""
    output: Annotated[PathOrUrl, Cli(position=3)]
    """A folder or URL for the scores. It has to be empty, or to have scores of the same model and data."""
    top: Natural = 0
    """For a model of several classes: also write columns that name this many of the most likely classes."""
    contributions: bool = False
    """Also write columns of what each feature adds to a score."""
    copied: CopyOption
    """Also write this column of the rows, such as an identifier, as text. May be repeated."""
    cluster: ClusterOption
    """Where the rows are scored: a file in configs/cluster, or a path. By default it is this process."""
    s3: S3Option
    """How s3:// URLs are reached."""


def score(config: ScoreConfig, observer: RunObserver) -> Json:
    """Score the rows of a data set.

    Raises
    ------
    InputError
        If the configuration, the model or the data is wrong.
    """
    with started(config, "score", observer) as (stages, workers):
        parallel_map = workers.parallel_map(observer)
        scoring = stages(
            "look at the files", batch_scoring.plan_scoring, config.model, source_of(config), config.output,
            each=parallel_map, place_on_workers=workers.place, name=config.name or "", contributions=config.contributions,
            top=config.top, copied=tuple(config.copied),
        )  # fmt: skip
        score_part = functools.partial(batch_scoring.score_part, scoring.url, scoring.key, urls=scoring.secret_urls)
        parts = stages("score", lambda: list(parallel_map(score_part, scoring.rows.items)))
        result = stages("write the summary", batch_scoring.write_summary, scoring, parts)
    return {**result, "seconds": stages.elapsed()}


def score_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist score` prints."""
    lines = [f"{result['output']}: {counted(result['rows'], 'row')} in {counted(result['parts'], 'part')}"]
    if cost := result.get("cost"):  # the expected cost of the decisions
        if cost["kind"] == "unknown":
            lines.append(f"what the decisions cost is not known: {cost['why']}")
        else:
            value = f"{number_text(100 * cost['value'])}{' by the alerts of all classes' if 'classes' in cost else ''}"
            if cost["kind"] == "expected":
                lines.append(f"the decisions on 100 rows are expected to cost {value}, if the probabilities are right")
            else:
                interval = ends_text(cost["interval"], lambda end: number_text(100 * end))
                lines.append(f"the decisions on 100 rows cost {value}{interval}")
    return lines + lines_of_values(result)


def lines_of_values(result: Json) -> list[str]:
    """Return lines about the values of the rows.

    They are a warning if many rows were training rows, and the columns with missing or unknown values.
    """
    checked, known = result["training_rows"]
    warned = (
        f"warning: {known:,} of {counted(checked, 'row')}{' that could be looked up' * (checked < result['rows'])} "
        f"{'was a training row, or equals one' if known == 1 else 'were training rows, or equal one'}: the model has seen "
        f"{'it, so its score looks' if known == 1 else 'them, so their scores look'} better than those of new rows"
    )
    return [warned] * (known > MANY_KNOWN * checked) + [
        f"{kind} values{', which no training row had' * (kind == 'unknown')}: "
        f"{', '.join(f'{name} {n:,}' for name, n in result[kind].items())}"
        for kind in ("missing", "unknown")
        if result[kind]
    ]
