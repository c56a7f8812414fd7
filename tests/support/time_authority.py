"""A time-stamping authority on the loopback: OpenSSL's, behind a small HTTP server."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

CONFIG = """
[tsa]
default_tsa = t
[t]
serial = {folder}/serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1, millisecs:500
ordering = no
tsa_name = no
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


def openssl(*words: str | Path, folder: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs the openssl program")
    subprocess.run(
        [program, *map(str, words)], cwd=folder, check=True, capture_output=True, timeout=60
    )


class Authority:
    """A root, a certificate for time stamps under it, and answers."""

    def __init__(
        self, folder: Path, usage: str = "critical,timeStamping", days: str = "30"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl(
            "req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "60",
            "-subj", "/CN=root of tests", folder=folder,
        )  # fmt: skip
        openssl(
            "req", *new_key, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=authority",
            folder=folder,
        )  # fmt: skip
        (folder / "usage").write_text("extendedKeyUsage=critical,timeStamping\n")
        openssl(
            "x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "30", "-extfile", "usage", "-out", "tsa.pem",
            folder=folder,
        )  # fmt: skip
        (folder / "serial").write_text("01\n")
        (folder / "tsa.cnf").write_text(CONFIG.format(folder=folder))

    @property
    def roots(self) -> Path:
        return self.folder / "ca.pem"

    def answer(self, query: bytes) -> bytes:
        """The response to a request, DER."""
        (self.folder / "q.tsq").write_bytes(query)
        openssl(
            "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "q.tsq", "-signer", "tsa.pem",
            "-inkey", "tsa.key", "-out", "r.tsr", folder=self.folder,
        )  # fmt: skip
        return (self.folder / "r.tsr").read_bytes()


class AuthorityServer:
    """An authority over HTTP; `answer` may be replaced by a test."""

    def __init__(self, authority: Authority) -> None:
        self.answer = authority.answer
        self.status = 200
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                data = owner.answer(body)
                self.send_response(owner.status)
                self.send_header("Content-Type", "application/timestamp-reply")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Tests print nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
