"""Keep a model up to date: train on the newest rows, compare, promote, score and watch."""

from typing import Literal

from aucdist.data.shards.reading import fingerprint_of
from aucdist.data.storage import files
from aucdist.data.storage.files import absolute
from aucdist.errors import InputError, Json
from aucdist.store import Lease, lease, read_store, remove_old_versions
from flows.compute.clusters import Stages, s3_as_configured
from flows.config.data import TestConfig, UnlabelledRef, batch_name, source_of
from flows.config.loading import BelowOne, CountOption, FileOptions, Name, PathOrUrl, Strict
from flows.model_store import promotion_lines
from flows.progress import RunObserver
from flows.promote import PromoteConfig, promote_run
from flows.score import ScoreConfig, score
from flows.train.config import TrainConfig
from flows.train.run import train
from flows.watch import WatchConfig, watch, watch_lines


class KeepCurrentConfig(Strict):
    """A model that is trained again on the newest rows, and replaced if the new model meets the condition."""

    store: PathOrUrl
    """The model store: a folder or URL."""
    train: TrainConfig
    """The training run. All stages use its `cluster` and its `s3`."""
    window: CountOption = None
    """For a source that is a pattern of files: the number of newest files, by name, to train on. By default all files
    are used."""
    held_out: CountOption = None
    """For a source that is a pattern of files: the number of newest files that become test rows and are not used for
    training. Give it without `train.data.test`."""
    condition: Literal["better", "not-worse", "always"] = "not-worse"
    """When the version in use is replaced, like `--if` of `aucdist promote`."""
    margin: BelowOne = None
    """The smallest difference that counts, like `--margin` of `aucdist promote`. By default `not-worse` uses 0.005."""
    metric: Literal["average_precision"] | None = None
    """The metric that is compared, like `--metric` of `aucdist promote`."""
    keep: CountOption = None
    """The number of versions to keep. Older ones are removed."""
    warm_start: bool = True
    """Whether the fit starts from the weights in use, if the features are the same."""
    new: UnlabelledRef | None = None
    """The rows to score and to watch, with the version that is in use after training."""
    batch: Name | None = None
    """The name of these rows. By default it is the name of the data set or of its first file, and a digest of their
    version, because a file of this name may have other rows each night."""
    scores: PathOrUrl = "scores"
    """The folder or URL below which the scores of each batch are written."""

    def _check(self) -> None:
        for key in ("margin", "metric"):
            if getattr(self, key) and self.condition == "always":
                raise InputError(f"`{key}` has no effect with `condition: always`: leave `{key}` out")
        if self.store.startswith("models:"):
            raise InputError(
                "`store` is a folder or URL: a registered model of MLflow is promoted with `aucdist promote`"
            )
        data = self.train.data
        if (self.held_out is None) != (data.test is not None):
            raise InputError(
                "runs are compared on rows that they were not trained on: give either `held_out`, or `train.data.test`"
            )
        if self.window or self.held_out:
            source = source_of(data).source
            if data.name is not None or not isinstance(source, str) or not any(c in source for c in "*?["):
                raise InputError(
                    "`window` and `held_out` choose among the files of a pattern: give `train.data.source`"
                )


class KeepCurrentOptions(FileOptions):
    """The options of `aucdist keep-current`."""

    folder, config_class = "keep_current", KeepCurrentConfig


def keep_current(config: KeepCurrentConfig, observer: RunObserver) -> Json:
    """Train on the newest rows, replace the version in use if the condition holds, and score and watch the new rows.

    Only one run at a time can work on a store, and a second one is refused. If a run is killed, a complete version stays in use.
    The same command then does what is left to do.

    Parameters
    ----------
    config : KeepCurrentConfig
        The configuration.
    observer : RunObserver
        The observer that stages and their progress are reported to.

    Returns
    -------
    dict
        What ``aucdist keep-current --json`` prints.

    Raises
    ------
    InputError
        If the configuration or the data is wrong, or if another run works on the store.
    """
    store, training = absolute(config.store), config.train
    with s3_as_configured(training, observer), lease(store, f"keep-current {training.name}") as held:
        current = read_store(store).current
        start = f"{store}/{current.folder}" if current and config.warm_start else None
        trained = train(with_newest_files(config), observer, start)
        stages = Stages(observer)
        promotion = stages("promote", promote_if, config, store, trained["run"], held)
        scored = watched = None
        if config.new:  # the new rows are scored by the version that is now in use
            version, rows = promotion["version"], fingerprint_of(source_of(config.new))[:8]
            # A file such as today.parquet has other rows each night, while the version in use may stay the same.
            batch = f"{config.batch or f'{batch_name(config.new)}-{rows}'}-version-{version:05d}"
            output, model = f"{absolute(config.scores)}/{batch}", f"{store}@{version}"
            of_both = {"model": model, "cluster": training.cluster, "s3": training.s3}
            scoring = {"output": output, "name": config.new.name, "source": config.new.source}
            scored = score(ScoreConfig.model_validate(of_both | scoring), observer)
            watching = {"data": config.new, "scores": output, "batch": batch}
            watched = watch(WatchConfig.model_validate(of_both | watching), observer)
    return {
        "store": files.shown(store), "run": trained["run"], "trained": trained, "promotion": promotion, "scored": scored,
        "watched": watched, "alarms": watched["alarms"] if watched else [],
    }  # fmt: skip


def promote_if(config: KeepCurrentConfig, store: str, run: str, held: Lease) -> Json:
    """Promote the run if the condition holds, unless another run has taken over the lease of the store in the meantime."""
    held.check()
    asked = config.model_dump(include={"condition", "margin", "metric"})
    return promote_run(PromoteConfig(run=run, store=store, **asked)) | {
        "removed": remove_old_versions(read_store(store), config.keep) if config.keep else []
    }


def with_newest_files(config: KeepCurrentConfig) -> TrainConfig:
    """Return the training configuration for the newest files that match the pattern.

    The newest of them are held out as test rows.
    """
    if not (config.window or config.held_out):
        return config.train
    data = config.train.data
    source = source_of(data)
    matching, held_out = sorted(files.files_of(source.source)), config.held_out or 0
    if len(matching) <= held_out:
        raise InputError(
            f"`held_out` takes all files of {source.display_name} ({len(matching)}): wait for another one, or lower `held_out`"
        )
    trained = matching[: len(matching) - held_out][-(config.window or 0) :]  # -0 takes all
    changes: Json = {"source": source.model_copy(update={"source": trained})}
    if held_out:
        changes["test"] = TestConfig(source=source.model_copy(update={"source": matching[-held_out:]}))
    return config.train.model_copy(update={"data": data.model_copy(update=changes)})


def keep_current_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist keep-current` prints."""
    watched = watch_lines(result["watched"]) if result["watched"] else []
    return [f"trained {result['run']}", *promotion_lines(result["promotion"]), *watched]
