"""`aucdist reproduce`."""

from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Command, Debug, print_json, report_errors


def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper of configs/reproduce, such as 000, or a YAML file.")],
    quick: Annotated[bool, typer.Option("--quick", help="Run only the small part that the file defines.")] = False,
    cluster: Cluster = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Folder or URL of the results. [default: runs]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Reproduce the tables and figures of a paper and compare them with the printed ones.

    The result is a page and a CSV for each table. The result of each fold is stored: run the command again to resume.
    """
    with report_errors(debug):
        from flows.reproduce.config import load_paper
        from flows.reproduce.page import summary_entries

        result = COMMAND.run(load_paper(paper, quick=quick, cluster=cluster, output=output), debug)
        if as_json:
            print_json(result)
        else:
            for name, summary in result["tables"].items():
                for quantity, text in summary_entries(summary, name):
                    typer.echo(f"{quantity}: {text}")
            typer.echo(f"report: {result['run']}/report.html")


COMMAND = Command("reproduce", reproduce, page="reproduce", function="reproduce", flow="reproduce_paper")
