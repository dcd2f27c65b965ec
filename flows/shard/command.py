"""`aucdist shard`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Cluster, Debug, followed, print_json, quieten_prefect, reported

Data = Annotated[
    str, typer.Argument(help="A data set of the catalog, a YAML file with the keys of a source, or a file or URL.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the source, as in --set label=clicked. May be repeated."
    ),
]


def shard(
    source: Data,
    target: Annotated[str, typer.Argument(help="A folder or URL; a data set that is there is replaced.")],
    settings: Settings = None,
    rows_per_shard: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many rows in a shard. [default: 64 MiB of them]")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64. [default: what the source has]")] = None,
    seed: Annotated[int, typer.Option(help="Of the order of the rows.")] = 0,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a data set as shards: rows in random order, each shard with its share of the positives.

    Until all are there, the data set that was there stays. A run that was ended goes on where it was when it is started again
    with the same source and options.
    """
    with reported(debug):
        from flows.config.sources import configured, named_source
        from flows.shard.config import ShardConfig
        from flows.shard.run import told

        _, found = named_source(source, settings or ())
        keys = {"source": found, "target": target, "rows_per_shard": rows_per_shard, "dtype": dtype, "seed": seed}
        config = configured(ShardConfig, "aucdist shard", cluster, keys)
        result = _run(config, debug)
        if as_json:
            print_json(result)
        else:
            typer.echo(told(result))


def _run(config: Any, debug: bool) -> dict[str, Any]:
    from flows.config.prefect_api import api_configured

    if api_configured():
        from flows.shard.flow import shard_data

        quieten_prefect(debug)
        return shard_data(config)

    from flows.shard.run import shard as shard_plainly

    return followed(lambda observer: shard_plainly(config, observer))
