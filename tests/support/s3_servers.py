"""S3 servers for tests: a real one where the environment names it, and a mock behind a proxy that spoils answers on demand."""

import http.client
import logging
import os
import socket
import struct
import threading
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
import s3fs

REAL = os.environ.get("AUCDIST_TEST_S3")
"""The endpoint of a real server for tests; its credentials are in the environment too, as `labs/s3/up.sh` prints them."""

LAB = Path(os.environ.get("AUCDIST_LABS", Path(__file__).resolve().parents[3] / "shared" / "labs")) / "s3"
MOCK = "AKIASESAME", "sesame-sesame"  # a mock takes any


def need_real():
    """Return the real server's endpoint and credentials."""
    if not REAL:
        pytest.skip("no real S3 server: set AUCDIST_TEST_S3 to its endpoint, and the credentials as for any S3")
    return REAL, (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])


@contextmanager
def new_connections():
    """Use connections that know nothing of those before, nor those after of these."""
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()


def point_to(monkeypatch, endpoint, key, secret):
    for name, value in (
        ("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret), ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint), ("NO_PROXY", "127.0.0.1"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)


@contextmanager
def new_bucket(client, name):
    """Make a bucket for as long as the context lasts."""
    client.create_bucket(Bucket=name)
    try:
        yield client
    finally:
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
            for item in page.get("Contents", []):
                client.delete_object(Bucket=name, Key=item["Key"])
        client.delete_bucket(Bucket=name)


@contextmanager
def mock_server():
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    put, one_at_a_time = S3Response.put_object, threading.Lock()

    def put_object(response):
        """Look for the object and write it as one step, as S3 does. Without the lock, two conditional writes may both succeed."""
        with one_at_a_time:
            return put(response)

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(S3Response, "put_object", put_object)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


SERVERS = ["mock", pytest.param("real", marks=pytest.mark.s3)]


@contextmanager
def bucket_on(server, name):
    """Point the environment to one of `SERVERS`, and give a client of it that has a new bucket of that name."""
    with ExitStack() as stack:
        endpoint, credentials = need_real() if server == "real" else (stack.enter_context(mock_server()), MOCK)
        point_to(stack.enter_context(pytest.MonkeyPatch.context()), endpoint, *credentials)
        stack.enter_context(new_connections())
        client = stack.enter_context(closing(boto3.session.Session().client("s3")))
        yield stack.enter_context(new_bucket(client, name))


class Proxy(ThreadingHTTPServer):
    """Hands requests on to a server, and spoils the answers to those for objects as `faults` says, one after the other.

    A fault is None (none), ``slow-down`` (503), ``reset`` (the connection, in mid-body), ``truncated`` (the body, and the
    connection closed in order), ``etag`` (another one), ``flipped`` (one bit of the body), ``lost`` (the whole answer),
    ``no-etag``, ``endless`` and ``unsized`` (what Content-Range states), or ``moved`` (301 without an address).
    """

    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.faults, self.asked, self.lock = [], [], threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # clients that went away

    def next_fault(self):
        with self.lock:
            return self.faults.pop(0) if self.faults else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_one(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, dict(self.headers)))
        of_object = self.command in ("GET", "PUT") and urlsplit(self.path).path.count("/") > 1
        fault = self.server.next_fault() if of_object else None
        if fault == "slow-down":
            body = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
            return self.answer(503, {"Content-Type": "application/xml", "Content-Length": str(len(body))}, body)
        if fault == "moved":
            body = b"<Error><Code>PermanentRedirect</Code><Message>Another endpoint.</Message></Error>"
            return self.answer(301, {"Content-Type": "application/xml", "Content-Length": str(len(body))}, body)
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=30)
        upstream.request(self.command, self.path, sent, dict(self.headers))
        got = upstream.getresponse()
        body, headers = got.read(), {k: v for k, v in got.getheaders() if k.lower() != "transfer-encoding"}
        if self.command != "HEAD":
            headers["Content-Length"] = str(len(body))
        upstream.close()
        if fault == "etag":
            headers = {k: '"0123456789abcdef"' if k.lower() == "etag" else v for k, v in headers.items()}
        elif fault == "no-etag":
            headers = {k: v for k, v in headers.items() if k.lower() != "etag"}
        elif fault in ("endless", "unsized"):
            size = {"endless": str(10**18), "unsized": "*"}[fault]
            headers = {k: v for k, v in headers.items() if k.lower() != "content-range"}
            headers["Content-Range"] = f"bytes 0-{len(body) - 1}/{size}"
        elif fault == "flipped":
            body = body[:-1] + bytes([body[-1] ^ 1])
        elif fault == "lost":
            return self.cut(reset=True)
        half = len(body) // 2 if fault in ("reset", "truncated") else len(body)
        self.answer(got.status, headers, body[:half])
        if half < len(body):
            self.cut(reset=fault == "reset")
        return None

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_one

    def answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def cut(self, *, reset):
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()  # the last one to hold the socket open
        self.connection.close()


@contextmanager
def proxy(upstream):
    server = Proxy(upstream)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
