"""A headless Chromium for the tests of the pages, controlled through its debugging protocol over two pipes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Chromium reads from descriptor 3 and writes to 4, which this process may already use.
START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")

WINDOW = 1300
"""Pixels of a usual window, in which no table may be clipped."""

CLIPPED = """
[...document.querySelectorAll("body *")]
  .filter(e => !e.closest("svg") && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")
  .map(e => e.className + " " + (e.getAttribute("aria-label") || e.textContent.trim().slice(0, 40)) + ": "
    + e.scrollWidth + " > " + e.clientWidth)
"""
"""The elements that show only a part of their content."""


def installed() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a running Chromium."""

    def __init__(self, to: Any, back: Any) -> None:
        self._to, self._back, self._number, self._session = to, back, 0, None
        self.messages: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply["error"]
                return reply["result"]

    def _next(self) -> Any:
        parts = []
        while (byte := self._back.read(1)) != b"\0":
            assert byte, "the browser has ended"
            parts.append(byte)
        message = json.loads(b"".join(parts))
        if message.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.messages.append(json.dumps(message["params"]))
        if message.get("method") == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:", "data:")):
                self.messages.append(f"requested {url}")
        return message

    def open(self, page: Path, *, width: int, dark: bool = False) -> None:
        """Load a file and wait until it is complete."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=page.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium and end it; `profile` is a folder of its own."""
    path = installed()
    assert path is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe")
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(theirs_in), str(theirs_out), path, *flags, f"--user-data-dir={profile}"],
        pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        with os.fdopen(ours_out, "wb") as to, os.fdopen(ours_in, "rb") as back:
            yield Browser(to, back)
    finally:
        process.terminate()
        process.wait(timeout=30)
