"""`aucdist score`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Cluster, Debug, followed, print_json, quieten_prefect, reported
from flows.shard.command import Data, Settings


def score(
    model: Annotated[str, typer.Argument(help="A model: a folder or URL, such as runs/<run>/model.")],
    data: Data,
    output: Annotated[str, typer.Argument(help="A folder or URL for the scores, empty or of this very run.")],
    settings: Settings = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Score the rows of a data set: Parquet files with row_id, score, prediction, and the probability if the model has one.

    The rows need no label. A run that was ended goes on where it was when it is started again.
    """
    with reported(debug):
        from flows.config.sources import configured, named_source
        from flows.score.config import ScoreConfig

        _, source = named_source(data, settings or (), labelled=False)
        config = configured(ScoreConfig, "aucdist score", cluster, {"source": source, "model": model, "output": output})
        result = _run(config, debug)
        if as_json:
            print_json(result)
        else:
            typer.echo(f"{result['output']}: {result['rows']} rows in {result['parts']} parts")


def _run(config: Any, debug: bool) -> dict[str, Any]:
    from flows.config.prefect_api import api_configured

    if api_configured():
        from flows.score.flow import score as score_flow

        quieten_prefect(debug)
        return score_flow(config)

    from flows.score.run import score as score_plainly

    return followed(lambda observer: score_plainly(config, observer))
