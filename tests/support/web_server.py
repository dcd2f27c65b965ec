"""Servers of the web for tests: of a file for those who know a password, which refuses everybody as an S3 server; of a folder."""

import base64
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROWS = "".join(f"{'+1' if i % 3 == 0 else '-1'} 1:{i} 2:{i * i % 7}\n" for i in range(60))
REFUSED = (
    "<Error><Code>SignatureDoesNotMatch</Code><Message>The signature is not the one expected.</Message>"
    "<StringToSign>{headers}</StringToSign></Error>"
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path.startswith("/web/"):
            expected = base64.b64encode(f"user:{self.server.password}".encode()).decode()
            known, there = self.headers.get("Authorization") == f"Basic {expected}", "/rows.svm" in self.path
            self.answer(200 if known and there else 404 if known else 401, ROWS)
        else:
            self.answer(403, REFUSED.format(headers=self.headers))  # which repeats what it was sent

    do_PUT = do_HEAD = do_POST = do_DELETE = do_GET

    def answer(self, status, body):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


@contextmanager
def web_server(password):
    """Yield host and port; the file is ``/web/rows.svm``, in svmlight format, for ``user`` with the password."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads, server.password = True, password
    with _serving(server):
        yield f"127.0.0.1:{server.server_port}"


class _FolderHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        if not self.server.cut_off:
            super().do_GET()
            return
        self.server.cut_off -= 1
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"1 1:1")


class FolderServer(ThreadingHTTPServer):
    """Serves a folder, and knows what it was asked for; the next `cut_off` answers break off."""

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), partial(_FolderHandler, directory=str(folder)))
        self.asked: list[str] = []
        self.cut_off = 0
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def folder_server(folder: Path) -> Iterator[FolderServer]:
    """Serve a folder while the context lasts."""
    with FolderServer(folder) as server, _serving(server):
        yield server


@contextmanager
def _serving(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield
    server.shutdown()
    server.server_close()
    thread.join()


def scraped(url):
    """Return name, labels and value of each figure of a page for Prometheus."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    matches = (re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line) for line in lines if not line.startswith("#"))
    return [(name, labels or "", value) for name, labels, value in (match.groups() for match in matches)]
