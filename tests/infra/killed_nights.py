"""Kill `aucdist keep-current` and `aucdist promote` at random moments: the store always has one whole version in use.

By hand: ``python tests/infra/killed_nights.py /tmp/somewhere`` or, with the credentials of an S3 server in the environment,
``python tests/infra/killed_nights.py s3://bucket/prefix``. After each kill the history is read, every file of the version in use
must have its checksum, and the model is loaded.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as pytest does

from support.nights import day, night

from aucdist.data.storage import files
from aucdist.model import load_model
from aucdist.store.history import read_store
from aucdist.store.lease import LEASES, Lease


def command(*args: str) -> list[str]:
    """Return a command of aucdist."""
    return [sys.executable, "-m", "flows.cli", *args]


def whole(store: str) -> int:
    """Check that the version in use is whole, and return the number of changes so far."""
    found = read_store(store)
    current = found.current
    if current is None:
        return 0
    for name, sha256 in current.files.items():
        data = files.read_bytes(f"{found.folder_of(current)}/{name}")
        assert hashlib.sha256(data).hexdigest() == sha256, f"{name} is not what was promoted"
    load_model(store)
    return len(found.changes)


def end_lease(store: str) -> None:
    """End the lease of a run that was killed, which would expire in minutes."""
    numbers = [int(name[:8]) for name in files.names_in(f"{store}/{LEASES}") if name.endswith(".json")]
    if numbers:
        Lease(store, max(numbers), time.time).end()


def main() -> None:
    """Kill one run after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="an empty folder, or s3://bucket/prefix")
    parser.add_argument("--kills", type=int, default=25, help="of each of the two commands")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    store, rng = f"{given.url}/store", random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for number in range(4):
            day(here, number)
        fresh = here / "fresh"
        fresh.mkdir()
        config = night(here, day(fresh, 9), store=store, scores=f"{given.url}/scores", condition="always", margin=0.0)
        content = yaml.safe_load(config.read_text(encoding="utf-8"))
        content["train"]["output"] = f"{given.url}/runs"
        config.write_text(yaml.safe_dump(content), encoding="utf-8")
        kept = command("keep-current", str(config))
        start = time.monotonic()
        subprocess.run(kept, check=True, capture_output=True)
        lasted = time.monotonic() - start
        run = f"{given.url}/runs/{next(n for n in files.names_in(f'{given.url}/runs') if not n.startswith('.'))}"
        for name, args in (("keep-current", kept), ("promote", command("promote", run, store, "--keep", "3"))):
            before, killed = whole(store), 0
            start = time.monotonic()
            if name == "promote":
                subprocess.run(args, check=True, capture_output=True)
                lasted = time.monotonic() - start
            for _ in range(given.kills):
                start = time.monotonic()
                with subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                    try:
                        process.wait(rng.uniform(0.3 * lasted, lasted))
                        lasted = time.monotonic() - start  # the machine is less busy than it was
                    except subprocess.TimeoutExpired:
                        process.send_signal(signal.SIGKILL)
                        killed += 1
                end_lease(store)
                whole(store)
            print(
                f"{name}: {given.kills} runs, {killed} killed, {whole(store) - before} changes made, every version whole",
                flush=True,
            )
        subprocess.run(kept, check=True, capture_output=True)
        print(f"then keep-current once more: {whole(store)} changes", flush=True)


if __name__ == "__main__":
    main()
