"""`aucdist data`: list, show, preview and verify data sets."""

from pathlib import Path
from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Command, Debug, print_json, report_errors, run_with_progress

app = typer.Typer(no_args_is_help=True, help="The catalog of data sets, and what is in a data set.")


@app.command("list")
def data_list(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the data sets of the catalog: format, rows, features, and whether they are here."""
    with report_errors(debug):
        from flows.data.run import list_catalog

        entries = list(list_catalog())
        if as_json:
            print_json({entry.pop("name"): entry for entry in entries})
            return
        for entry in entries:
            shape = f"{entry['rows'] or '?'} x {entry['features'] or '?'}"
            typer.echo(
                f"{entry['name']:32} {entry['format']:10} {shape:>18}  {'here' if entry['present'] else 'absent'}"
            )


@app.command("show")
def data_show(
    name: Annotated[str, typer.Argument(help="A data set of the catalog, or the folder or URL of shards.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the catalog's entry of a data set, or what the manifest says of shards."""
    with report_errors(debug):
        import yaml

        from flows.config.sources import source_from_name
        from flows.data.run import describe

        content = describe(*source_from_name(name))
        if as_json:
            print_json(content)
        else:
            typer.echo(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), nl=False)


@app.command("preview")
def data_preview(
    config: Annotated[
        str,
        typer.Argument(help="A YAML file of a run or of a source, the name of one in configs/train, or a file or URL."),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, as in --set data.scale=none. May be repeated."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page: a histogram by class of each column.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read a data set and show what becomes of each column, before any fit: numbers, categories, parts of dates."""
    with report_errors(debug):
        from flows.data.preview import preview, preview_text

        found = preview(config, settings or (), html)
        if as_json:
            print_json(found)
        else:
            typer.echo(preview_text(found))
            if html is not None:
                typer.echo(f"page: {html}")


@app.command("verify")
def data_verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets of the catalog, or folders or URLs of shards. [default: all that are here]"),
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read data sets and check them: every hash and count of shards, and what the catalog says of other data sets."""
    with report_errors(debug):
        from aucdist.errors import InputError
        from flows.config.sources import cluster_from_name
        from flows.data.run import verify

        cluster_config = cluster_from_name(cluster)
        found = run_with_progress(lambda observer: verify(names, cluster_config, observer))
        if as_json:
            print_json(found)
        else:
            for name, faults in found.items():
                typer.echo(f"{name}: {'sound' if not faults else f'{len(faults)} faults'}")
        wrong = [fault for faults in found.values() for fault in faults]
        if wrong:
            raise InputError("\n".join(wrong))


COMMAND = Command("data", app, page="shard")
