"""What a watch has found, in sentences."""

from typing import Any

from aucdist.report.watch import alarm_text, measure_text


def watch_lines(result: dict[str, Any]) -> list[str]:
    """Return the lines that `aucdist watch` prints."""
    known, score = result["performance"], result["found"]["score"]
    against = "the model" if result["version"] is None else f"version {result['version']}"
    of = "the score" if score.get("class") is None else f"the score of class {score['class']}, which has moved most,"
    lines = [f"batch {result['batch']}: {result['rows']:,} rows against {against}, PSI of {of} {score['psi']:.3f}"]
    if known is not None:
        positive = f", {known['n_pos']:,} of them positive" if "n_pos" in known else ""
        lines.append(f"{known['labelled']:,} of {result['rows']:,} rows have a label{positive}")
        promised = {} if known["promised"] is None else known["promised"]["measures"]
        lines += [measure_text(name, value, promised.get(name)) for name, value in known["measures"].items()]
    lines += result["damaged"]
    lines += [f"ALARM: {alarm_text(alarm)}" for alarm in result["alarms"]] or ["no alarms"]
    return [*lines, f"page: {result['page']}"]
