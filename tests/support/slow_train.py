"""The flow `train-auc`, with a pause after each round while the file `slow` is in the working folder."""

import time
from pathlib import Path
from typing import Any

from flows.orchestration import flows
from flows.progress import LineObserver

SECONDS = 1.0


class SlowObserver(LineObserver):
    """Writes the lines of the log, and pauses after each round."""

    def on(self, event: str, facts: dict[str, Any]) -> None:
        """Write the event, and pause after a round."""
        super().on(event, facts)
        if event == "round" and Path("slow").exists():
            time.sleep(SECONDS)


flows.log_observer = SlowObserver  # type: ignore[assignment]
train_auc: Any = flows.train_auc
