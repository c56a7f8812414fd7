"""The samples for systemd and nginx: accepted by these programs where they are installed."""

import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from configparser import ConfigParser
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from ragaudit.prover.settings import ServerSettings
from ragaudit.serving.server import BACKLOG, ConnectionLimits
from ragaudit.verifier.settings import Listen

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("prover", "verifier")
UNITS = (*SERVICES, "cosigner")
LIMITS = ConnectionLimits()
SHOWING = """
import sys
from ragaudit.serving import server
from ragaudit.serving.application import application
from starlette.requests import Request

app = application("a service")

@app.get("/v1/keys")
def show(request: Request) -> str:
    return f"{request.url.scheme} {request.client.host}"

server.run(
    lambda: app, host="127.0.0.1", port=int(sys.argv[1]), trusted_proxies=["127.0.0.1/32"],
    log_level="error",
)
"""


def unit(service: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(ROOT / f"deployment/systemd/ragaudit-{service}.service")
    return parser


def proxy(service: str) -> str:
    return (ROOT / f"deployment/nginx/{service}.conf").read_text(encoding="utf-8")


@pytest.mark.parametrize("service", UNITS)
def test_a_unit_runs_the_service_confined(service: str) -> None:
    found = unit(service)["Service"]
    words = found["ExecStart"].split()
    assert words[0] == "/opt/ragaudit/bin/ragaudit" and words[1:3] == [service, "serve"]
    assert words[4].startswith(f"/var/lib/{found['StateDirectory']}/")
    assert found["User"] == found["Group"] != "root"
    assert found["UMask"] == "0077" and found["NoNewPrivileges"] == "yes"
    assert found["ProtectSystem"] == "strict" and found["CapabilityBoundingSet"] == ""
    assert int(found["LimitNOFILE"]) >= 2 * LIMITS.connections + 2 * BACKLOG
    assert int(found["TimeoutStopSec"]) > LIMITS.stop_seconds


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("service", UNITS)
def test_systemd_accepts_a_unit(service: str, tmp_path: Path) -> None:
    text = (ROOT / f"deployment/systemd/ragaudit-{service}.service").read_text()
    file = tmp_path / f"ragaudit-{service}.service"
    file.write_text(text.replace("/opt/ragaudit/bin/ragaudit", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_a_proxy_leads_to_the_service_and_rewrites_nothing(service: str) -> None:
    text = proxy(service)
    port = ServerSettings().port if service == "prover" else Listen().port
    assert f"server 127.0.0.1:{port};" in text
    # A path behind the upstream's name would be decoded and encoded again: signatures cover it.
    assert set(re.findall(r"proxy_pass (\S+);", text)) == {f"http://ragaudit_{service}"}
    assert "proxy_next_upstream off;" in text and "rewrite" not in text.replace("may rewrite", "")
    (idle,) = re.findall(r"\n    keepalive_timeout (\d+)s;", text)
    assert int(idle) < LIMITS.idle_seconds


def test_the_operators_api_is_not_proxied() -> None:
    assert re.search(r"location /v1/operator/ \{\s+return 404;", proxy("prover"))


def test_a_proxy_lets_in_no_more_than_the_prover_reads() -> None:
    (size,) = re.findall(r"client_max_body_size (\d+)k;", proxy("prover"))
    assert int(size) * 1024 == ServerSettings().max_body_bytes


@pytest.mark.parametrize(("service", "section"), [("prover", "server"), ("verifier", "listen")])
def test_a_proxy_writes_itself_who_asks(service: str, section: str) -> None:
    caddy = (ROOT / f"deployment/caddy/{service}.Caddyfile").read_text(encoding="utf-8")
    assert "header_up X-Forwarded-For {remote_host}" in caddy
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in proxy(service)
    for sample in (caddy, proxy(service)):
        assert f"{section}.trusted_proxies: [127.0.0.1/32]" in sample


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
@pytest.mark.parametrize("service", SERVICES)
def test_nginx_accepts_a_proxy(service: str, tmp_path: Path) -> None:
    file = _configured(service, _free_port(), tmp_path)
    done = subprocess.run(
        ["nginx", "-t", "-c", str(file), "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "[warn]" not in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_behind_nginx_learns_who_asks(service: str, tmp_path: Path) -> None:
    """The caller has an address of its own on the loopback, and says that it has another."""
    port, behind = _free_port(), _free_port()
    file = _configured(service, port, tmp_path)
    text = file.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{behind}")
    file.write_text(text.replace("127.0.0.1:8742", f"127.0.0.1:{behind}"))
    nginx = ["nginx", "-g", "daemon off; master_process off;", "-c", str(file), "-p", str(tmp_path)]
    program = [sys.executable, "-c", SHOWING, str(behind)]
    context = ssl.create_default_context(cafile=str(tmp_path / "server.pem"))
    context.check_hostname = False
    with subprocess.Popen(program) as shown, subprocess.Popen(nginx) as started:
        try:
            until = time.monotonic() + 60
            answer = b""
            while b" 200 " not in answer:
                assert time.monotonic() < until, answer
                with (
                    suppress(OSError),
                    socket.create_connection(
                        ("127.0.0.1", port), timeout=10, source_address=("127.0.0.9", 0)
                    ) as plain,
                    context.wrap_socket(plain) as peer,
                ):
                    peer.sendall(
                        b"GET /v1/keys HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                        b"X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: gopher\r\n\r\n"
                    )
                    answer = b"".join(iter(lambda peer=peer: peer.recv(4096), b""))  # type: ignore[misc]
            assert answer.endswith(b'"https 127.0.0.9"')
        finally:
            started.terminate()
            shown.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _configured(service: str, port: int, tmp_path: Path) -> Path:
    """The file of an nginx that has the sample, with a certificate and a port of its own."""
    certificate, key = _certificate(tmp_path)
    text = proxy(service).replace("443 ssl", f"{port} ssl").replace(f"[::]:{port}", "[::1]:0")
    text = text.replace("    listen [::1]:0 ssl;\n", "")
    text = re.sub(r"/etc/ssl/\S+\.pem", str(certificate), text)
    text = re.sub(r"/etc/ssl/\S+\.key", str(key), text)
    file = tmp_path / "nginx.conf"
    folders = "".join(
        f"{name}_temp_path {tmp_path}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"pid {tmp_path}/pid; error_log stderr; events {{}}"
    file.write_text(f"{head} http {{ access_log off; {folders}\n{text} }}")
    return file


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rag.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    files = folder / "server.pem", folder / "server.key"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files
