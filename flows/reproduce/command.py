"""`aucdist reproduce`."""

from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Debug, lines, print_json, reported


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
    with reported(debug):
        from flows.config.prefect_api import api_configured
        from flows.reproduce.config import load_paper
        from flows.reproduce.run import reproduce as run
        from flows.reproduce.summary import summary_entries

        config = load_paper(paper, quick=quick, cluster=cluster, output=output)
        if api_configured():
            from flows.reproduce.flow import reproduce_paper

            result = reproduce_paper(config)
        else:
            result = run(config, lines())
        if as_json:
            print_json(result)
        else:
            for name, summary in result["tables"].items():
                for quantity, text in summary_entries(summary, name):
                    typer.echo(f"{quantity}: {text}")
            typer.echo(f"report: {result['run']}/report.html")
