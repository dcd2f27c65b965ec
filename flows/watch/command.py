"""`aucdist watch`."""

from functools import partial
from typing import Annotated, Any

import typer

from flows.command import ALARMS, AsJson, Cluster, Command, Debug, SourceSettings, print_json, report_errors


def watch(
    model: Annotated[
        str, typer.Argument(help="A model store, or URL@3, or a run folder, or a model: a folder or URL.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(help="The rows of a batch: a data set of the catalog, a YAML file, or a file or URL."),
    ] = None,
    scores: Annotated[
        str | None, typer.Option(metavar="URL", help="Their scores by aucdist score. [default: they are scored]")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Labels of a batch: a Parquet or CSV file with row_id and the label."),
    ] = None,
    batch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Names the batch. [default: the data; for labels the last batch]")
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="URL", help="Where what was watched is kept. [default: watch, in the store]")
    ] = None,
    settings: SourceSettings = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare new rows with the training rows of a model, and their labels, when known, with what its run promised.

    The page index.html in the folder of --state shows all batches. The exit code is 3 if there are alarms.
    """
    with report_errors(debug):
        from flows.config.sources import config_from_options, source_from_name
        from flows.score.run import format_of
        from flows.watch.config import WatchConfig
        from flows.watch.text import watch_lines

        keys: dict[str, Any] = {"model": model, "scores": scores, "labels": labels, "batch": batch, "state": state}
        if data is not None:
            name, source = source_from_name(data, settings or (), labelled=False, otherwise=partial(format_of, model))
            keys |= {"data": {"source": source}, "batch": batch or name}
        result = COMMAND.run(config_from_options(WatchConfig, "aucdist watch", cluster, keys), debug)
        if as_json:
            print_json(result)
        else:
            typer.echo("\n".join(watch_lines(result)))
        if result["alarms"]:
            raise typer.Exit(ALARMS)


COMMAND = Command("watch", watch, page="in-service", function="watch", flow="watch", config="WatchConfig")
