"""`aucdist simulate`."""

from typing import Annotated

import typer

from flows.command import AsJson, Cluster, Command, Debug, print_json, report_errors, run_with_progress


def simulate(
    target: Annotated[
        str, typer.Argument(help="A folder or URL for the shards; a data set that is there is replaced.")
    ],
    rows: Annotated[int, typer.Option(help="Number of rows.")] = 1_000_000,
    features: Annotated[int, typer.Option(help="Number of features.")] = 50,
    positive_share: Annotated[float, typer.Option(help="Chance of a row to be positive.")] = 0.02,
    rows_per_shard: Annotated[
        int | None, typer.Option(metavar="N", help="The last shard may have fewer. [default: 64 MiB of them]")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    seed: Annotated[int, typer.Option(help="Of the rows, and of the direction between the classes.")] = 0,
    shift: Annotated[float, typer.Option(help="Distance between the class means, in standard deviations.")] = 1.2,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write simulated rows as shards, one after the other: two Gaussians, as many rows as the disk can take."""
    with report_errors(debug):
        from aucdist.data.shards.simulate import Simulation
        from flows.config.sources import cluster_from_name
        from flows.shard.run import summary_line
        from flows.simulate import run

        simulation = Simulation(rows, features, positive_share, rows_per_shard, dtype, seed, shift)  # type: ignore[arg-type]
        cluster_config = cluster_from_name(cluster)
        result = run_with_progress(lambda observer: run.simulate(simulation, target, cluster_config, observer))
        if as_json:
            print_json(result)
        else:
            typer.echo(summary_line(result))


COMMAND = Command("simulate", simulate, page="shard")
