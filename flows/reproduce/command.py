"""`aucdist reproduce`."""

from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Command, Debug, print_json, report_errors


def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper of configs/reproduce, such as 000, or a YAML file.")],
    quick: Annotated[bool, typer.Option("--quick", help="Only the small part of it that the file names.")] = False,
    cluster: Cluster = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the results are kept: a folder or a URL. [default: runs]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a paper's tables and figures, and hold them against the printed figures: a page and a CSV for each table.

    Each fold is a task of its own and its result is kept, so that a run that was ended goes on where it was.
    """
    with report_errors(debug):
        from flows.reproduce.config import load_paper

        result = COMMAND.run(load_paper(paper, quick=quick, cluster=cluster, output=output), debug)
        if as_json:
            print_json(result)
        else:
            for name, counts in result["tables"].items():
                typer.echo(
                    f"{name}: " + ", ".join(f"{key} {n}" for key, n in counts.items() if not isinstance(n, list))
                )
            typer.echo(f"report: {result['run']}/report.html")


COMMAND = Command("reproduce", reproduce, page="reproduce", function="reproduce", flow="reproduce_paper")
