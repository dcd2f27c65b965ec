"""What a watch has found, in sentences."""

from typing import Any

from aucdist.report.watch import alarm_text, measure_text


def watch_lines(result: dict[str, Any]) -> list[str]:
    """Return the lines that `aucdist watch` prints."""
    known, score = result["performance"], result["found"]["score"]
    against = "the model" if result["version"] is None else f"version {result['version']}"
    lines = [f"batch {result['batch']}: {result['rows']:,} rows against {against}, PSI of the score {score['psi']:.3f}"]
    if known is not None:
        lines.append(
            f"{known['labelled']:,} of {result['rows']:,} rows have a label, {known['n_pos']:,} of them positive"
        )
        promised = {} if known["promised"] is None else known["promised"]["measures"]
        lines += [measure_text(name, value, promised.get(name)) for name, value in known["measures"].items()]
    lines += [f"ALARM: {alarm_text(alarm)}" for alarm in result["alarms"]] or ["no alarms"]
    return [*lines, f"page: {result['page']}"]
