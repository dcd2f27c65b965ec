"""`aucdist promote`."""

from typing import Annotated

import typer

from aucdist.errors import InputError
from flows.command import AsJson, Command, Debug, SourceSettings, print_json, report_errors


def promote(
    run: Annotated[str, typer.Argument(help="A run folder, a path or URL.")],
    store: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="The model store, a folder or URL, made if need be; or models:/NAME in MLflow."
        ),
    ],
    condition: Annotated[
        str, typer.Option("--if", metavar="better|not-worse|always", help="When to replace the version in use.")
    ] = "always",
    margin: Annotated[
        float, typer.Option(help="The difference that counts: better by more, or not worse by as much.")
    ] = 0.0,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Labelled rows for the test, which neither model has seen. [default: the run's]"
        ),
    ] = None,
    settings: SourceSettings = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="Remove old versions until N are left. [default: remove none]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make the model of a run the one in use: a new version in a model store.

    With --if, the run and the version in use score the same rows, the run's test rows or those of --data. A paired test by
    flipped signs compares their AUC, or the partial AUC that the run was trained for. The exit code is 0 whether or not the
    condition holds.

    With models:/NAME it goes to MLflow at MLFLOW_TRACKING_URI: a run with metrics and report, a version of the registered model
    that mlflow.pyfunc loads, and the alias champion, or that of models:/NAME@ALIAS.
    """
    with report_errors(debug):
        from flows.config.sources import source_from_name
        from flows.promote.run import promote_run
        from flows.promote.text import promotion_lines

        if data is None and settings:
            raise InputError("--set changes the source of --data, and there is none")
        rows = None if data is None else source_from_name(data, settings or (), labelled=False)
        result = promote_run(run, store, condition, margin, keep, rows)
        if as_json:
            print_json(result)
        else:
            typer.echo("\n".join(promotion_lines(result)))


COMMAND = Command("promote", promote, page="in-service")
