"""`aucdist shard`."""

from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Command, Data, Debug, SourceSettings, print_json, report_errors


def shard(
    source: Data,
    target: Annotated[str, typer.Argument(help="A folder or URL; a data set that is there is replaced.")],
    settings: SourceSettings = None,
    rows_per_shard: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many rows in a shard. [default: 64 MiB of them]")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64. [default: that of the source]")] = None,
    seed: Annotated[int, typer.Option(help="Of the order of the rows.")] = 0,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a data set as shards: rows in random order, each shard with its share of the positives.

    A data set that is at the target stays until all shards are written. If sharding is interrupted, run the same command again,
    with the same source and options, to resume it.
    """
    with report_errors(debug):
        from flows.config.sources import config_from_options, source_from_name
        from flows.shard.config import ShardConfig
        from flows.shard.run import summary_line

        _, found = source_from_name(source, settings or ())
        keys = {"source": found, "target": target, "rows_per_shard": rows_per_shard, "dtype": dtype, "seed": seed}
        result = COMMAND.run(config_from_options(ShardConfig, "aucdist shard", cluster, keys), debug)
        if as_json:
            print_json(result)
        else:
            typer.echo(summary_line(result))


COMMAND = Command("shard", shard, page="shard", function="shard", flow="shard_data", config="ShardConfig")
