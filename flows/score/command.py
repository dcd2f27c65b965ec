"""`aucdist score`."""

from functools import partial
from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Command, Data, Debug, SourceSettings, print_json, report_errors


def score(
    model: Annotated[str, typer.Argument(help="A run folder, or the model in it: a folder or URL.")],
    data: Data,
    output: Annotated[str, typer.Argument(help="A folder or URL for the scores, empty or of this very run.")],
    settings: SourceSettings = None,
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Also columns of what each feature adds to a score.")
    ] = False,
    top: Annotated[
        int,
        typer.Option(min=0, help="For a model of several classes: columns that name so many of the most likely ones."),
    ] = 0,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Score the rows of a data set: Parquet files with row_id, score, prediction, and the probability if the model has one.

    The rows need no label. They are read as the training rows were: the model knows how. If scoring is interrupted, run the same
    command again to resume it.
    """
    with report_errors(debug):
        from flows.config.sources import config_from_options, source_from_name
        from flows.score.config import ScoreConfig
        from flows.score.run import cost_line, format_of

        _, source = source_from_name(data, settings or (), labelled=False, otherwise=partial(format_of, model))
        keys = {"source": source, "model": model, "output": output, "contributions": contributions, "top": top}
        result = COMMAND.run(config_from_options(ScoreConfig, "aucdist score", cluster, keys), debug)
        if as_json:
            print_json(result)
        else:
            typer.echo(f"{result['output']}: {result['rows']} rows in {result['parts']} parts")
            if "cost" in result:
                typer.echo(cost_line(result["cost"]))
            for what in ("missing", "unknown"):
                if result[what]:
                    typer.echo(f"{what} values: {', '.join(f'{name} {n:,}' for name, n in result[what].items())}")


COMMAND = Command("score", score, page="score", function="score", flow="score", config="ScoreConfig")
