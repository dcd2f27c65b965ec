"""Entry point of the command `aucdist`: where the extra `cli` is not installed, it says so in one line."""

import sys


def main() -> None:
    """Run the command, or exit with 1 if the packages of the command line are missing."""
    try:
        from flows.cli import main as run
    except ModuleNotFoundError as error:
        from aucdist.extras import explain_missing

        sys.exit(f"error: {explain_missing(error)}")
    run()
