"""`aucdist explain`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Command, Data, Debug, SourceSettings, print_json, report_errors


def explain(
    run: Annotated[str, typer.Argument(help="A run folder, or the model in it: a folder or URL.")],
    data: Data,
    settings: SourceSettings = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="The first N rows. [default: 10, and all with --output]")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="The N largest contributions to each score.")] = 5,
    reasons: Annotated[
        int | None,
        typer.Option(metavar="N", help="In place of contributions: the N columns that raise each score most."),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="NAME",
            help="Of a model of several classes: one to explain. May be repeated. [default: all]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A .csv or .parquet file for all contributions; else they are printed."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say what each feature, and each pair of features, adds to the score of each row.

    For linear models and models of binned features. The contributions of a row and the constant add up to its score.
    """
    with report_errors(debug):
        from pydantic import ValidationError

        from aucdist.errors import InputError
        from flows.config import loading
        from flows.config.sources import source_from_name
        from flows.explain.config import ExplainConfig

        _, source = source_from_name(data, settings or (), labelled=False)
        try:
            config = ExplainConfig(
                source=source, model=run, rows=rows, top=top, reasons=reasons, classes=classes or [], output=output
            )
        except ValidationError as error:
            raise InputError(loading.explain(error, ExplainConfig, "aucdist explain")) from None
        result = COMMAND.run(config, debug)
        if as_json:
            print_json(result)
        else:
            typer.echo(explanation_text(result))


def explanation_text(result: dict[str, Any]) -> str:
    """Return the result as text: a paragraph for each row, or where the table is."""
    from aucdist.report.text import number_text

    if result["output"] is not None:
        return f"{result['output']}: contributions of {result['rows']} rows"
    if result.get("classes"):
        return "\n".join(
            f"class {one['name']}\n{explanation_text(result | one | {'classes': []})}" for one in result["classes"]
        )
    lines = []
    if result.get("reasons"):
        return _reasons_text(result["reasons"])
    for row in result["explained"]:
        lines.append(f"row {row['row_id']}: score {number_text(row['score'], 5)}")
        for part in row["contributions"]:
            lines.append(f"  {part['adds']:+12.5g}  {part['feature']} = {_value_text(part['value'])}")
        if row["rest"] != 0.0:
            lines.append(f"  {row['rest']:+12.5g}  all other features")
        lines.append(f"  {row['constant']:+12.5g}  constant")
    return "\n".join(lines)


def _reasons_text(reasons: list[dict[str, Any]]) -> str:
    from aucdist.report.text import number_text

    lines = []
    for row in reasons:
        lines.append(f"row {row['row_id']}: score {number_text(row['score'], 5)}")
        for beside, what in (("beside_best", "best cell"), ("beside_average", "average row")):
            found = ", ".join(f"{part['feature']} {part['adds']:+.4g}" for part in row[beside]) or "nothing"
            lines.append(f"  beside the {what}: {found}")
    return "\n".join(lines)


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(_value_text(one) for one in value)
    return "missing" if value is None else f"{value:.6g}"


COMMAND = Command("explain", explain, page="additive", function="explain")
