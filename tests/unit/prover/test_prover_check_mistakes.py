"""`ragaudit prover check` and every mistake of an operator: what, where, what would be right."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pgvector_server
import postgresql_server
import pytest
import yaml
from databases import prover_tables
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.prover.command.checks import CHECKS
from ragaudit.prover.command.cli import app
from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.settings import load_settings
from ragaudit.prover.work import JOBS
from ragaudit.serving.jobs import opening
from typer.testing import CliRunner

AWAY = "http://127.0.0.1:1"
JWT = {"issuer": "i", "audience": "a"}
ENDPOINT = {"url": f"{AWAY}/v1", "model": "m", "dimension": 4}
DATABASE = "shelves"


@pytest.fixture
def prover(tmp_path: Path) -> Path:
    return set_up(tmp_path / "prover", provider="example.org", verifier=AWAY).settings


def run(settings: Path, **changes: Any) -> Any:
    """What the command finds once members of the settings, with dots, are these."""
    document = yaml.safe_load(settings.read_text())
    for name, value in changes.items():
        *sections, member = name.split("__")
        section = document
        for each in sections:
            section = section.setdefault(each, {})
        section[member] = value
    settings.write_text(yaml.safe_dump(document))
    arguments = ["check", "--settings", str(settings)]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code in (1, 2) and done.exception.__class__ is SystemExit, done.exception
    # For people each check has one line.
    shown = CliRunner().invoke(app, arguments)
    assert "Traceback" not in shown.output
    return json.loads(done.stdout)


def found(settings: Path, check: str, **changes: Any) -> dict[str, str]:
    """The fault of one check, which has all three parts."""
    faults = run(settings, **changes)
    assert set(faults) == set(CHECKS)
    for name, fault in faults.items():
        assert fault == "good" or all(fault[part] for part in ("what", "where", "expected")), name
        assert fault == "good" or not any("\n" in part for part in fault.values())
    assert faults[check] != "good", faults
    wanted: dict[str, str] = faults[check]
    return wanted


SURFACES: dict[str, Any] = {"enabled": ["chroma"], "collections": {}}
MISTAKES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a verifier that is away": ("verifier", {}, "cannot be reached", AWAY),
    "authorities that are no file": (
        "verifier", {"verifier__ca_file": "none"}, "no certificates", "verifier.ca_file"),
    "no key": (
        "keys", {"keys__provider_file": "none"}, "No such file", "prover/none"),
    "a database that is not there": (
        "store", {"store__url": "sqlite:///none.db"}, "no tables", "store"),
    "a database of no kind": ("store", {"store__url": "nonsense"}, "not a database URL", "URL"),
    "a token that is no file": (
        "backend",
        {"backend": {"kind": "chroma", "chroma": {
            "url": AWAY, "collections": {"shop": "docs"}, "token_file": "none"}}},
        "cannot read a secret file", "prover/none"),
    "a store that is away": (
        "backend",
        {"backend": {"kind": "chroma", "chroma": {"url": AWAY, "collections": {"shop": "docs"}}}},
        "the vector store cannot be reached", "backend"),
    "an embedder of no name": (
        "embedder", {"embedder": {"name": "nope"}}, "unknown embedder", "embedder.name"),
    "an embedding service that is away": (
        "embedder", {"embedder": {"name": "openai-compatible", "endpoint": ENDPOINT}},
        "cannot be reached", "embedder"),
    "its key that is no file": (
        "embedder",
        {"embedder": {"name": "openai-compatible", "endpoint": {**ENDPOINT, "key_file": "none"}}},
        "cannot read a secret file", "prover/none"),
    "nobody to embed texts": (
        "embedder", {"embedder": {"name": "none"}}, "", "embedder"),
    "a collection of no tenant": (
        "surfaces", {"surfaces": {**SURFACES, "collections": {"docs": "nope"}}},
        "no tenant nope", "surfaces.collections.docs"),
    "an account that is not there": (
        "surfaces", {"surfaces": {**SURFACES, "delegation": {"accounts": ["nobody"]}}},
        "no account nobody", "surfaces.delegation.accounts"),
    "a writer that is not there": (
        "surfaces", {"surfaces": {**SURFACES, "writes": {"accounts": ["nobody"]}}},
        "no account nobody", "surfaces.writes.accounts"),
    "an end user who writes and whom nobody may name": (
        "surfaces", {"surfaces": {**SURFACES, "writes": {"users": {"ada": ["grace"]}}}},
        "ada names no end users", "surfaces.writes.users"),
    "end users of no tenant": (
        "surfaces", {"surfaces": {**SURFACES, "delegation": {"register_tenants": ["nope"]}}},
        "no tenant nope", "surfaces.delegation.register_tenants"),
    "keys of tokens that are away": (
        "end users",
        {"surfaces": {**SURFACES, "delegation": {"jwt": {**JWT, "jwks_url": f"{AWAY}/jwks"}}}},
        "the keys of tokens cannot be fetched", f"{AWAY}/jwks"),
    "keys of tokens that are no file": (
        "end users", {"surfaces": {**SURFACES, "delegation": {"jwt": {**JWT, "jwks_file": "n"}}}},
        "no keys of tokens", "prover/n"),
    "a queue of jobs in a file": (
        "jobs", {"jobs__executor": "procrastinate"}, "a queue of jobs in sqlite", "jobs.executor"),
    "a source of the beacon that is away": (
        "beacon", {"beacon": {"sources": [AWAY]}}, "cannot be read", f"beacon.sources: {AWAY}"),
    "a chain of the beacon that is no file": (
        "beacon", {"beacon": {"chain_file": "none"}}, "cannot read", "prover/none"),
    "fences below a file": (
        "permissions", {"store__fence_folder": "prover.yaml/fences"}, "not a folder", "yaml"),
    "a sigma beside a promise that it does not keep": (
        "noise", {"window": {"sigma": "6", "epsilon_acc": "2"}},
        "sigma 6 keeps an epsilon_acc of 5.897299, not 2", "window.sigma"),
    "a sample of more rows than a verifier takes": (
        "policy", {"window": {"privacy": "none", "owners": {"rows": {"beta": "0.001"}}}},
        "6929 rows of a large index would be sampled", "window.owners.rows"),
    "proofs that are handed over when the audit is over": (
        "policy", {"window": {"release_seconds": 7200, "audit": {"deadline_seconds": 3600}}},
        "", "policy: release_seconds"),
    "more activation instants than a policy may have": (
        "policy", {"window": {"length_seconds": 20_000, "activation_every_seconds": 1}},
        "", "policy: activation_instants"),
    "noise that a coalition averages away": (
        "policy", {"window": {"sigma": "1"}},
        "no finite epsilon for 500 queries of a coalition", "window.sigma"),
    "cosigners that no file names": (
        "cosigners", {"window": {"privacy": "none", "cosigners": "required"}},
        "no further cosigners", "window.cosigners"),
    "a list of cosigners that is no file": (
        "cosigners", {"cosigners__policy_file": "none"}, "No such file", "prover/none"),
    "stamps by nobody": (
        "time stamps", {"window": {"privacy": "none", "time_stamps": "required"}},
        "no authority to ask", "window.time_stamps"),
    "an authority without roots": (
        "time stamps", {"time_stamps__authorities": [AWAY]}, "no roots", "time_stamps.roots_file"),
    "an audit stream in no folder": (
        "permissions", {"operation": {"audit_file": "none/audit"}}, "cannot be written", "none"),
}  # fmt: skip


@pytest.mark.parametrize(("check", "changes", "what", "where"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_explained(
    prover: Path, check: str, changes: dict[str, Any], what: str, where: str
) -> None:
    fault = found(prover, check, **changes)
    assert what in fault["what"] and where in fault["where"], fault


def test_cosigners_that_are_away_or_misspelt(prover: Path) -> None:
    policy = prover.with_name("cosigners.policy")
    key = SigningKey("one.example", COSIGNATURE_V1, PrivateKey.generate()).verifier_key
    for line, what in (
        (f"witness one {key} {AWAY}", "cannot be reached: ConnectError"),
        (f"witness one {key}", "nobody to ask"),
        ("witness one", "1 words after witness"),
    ):
        policy.write_text(f"{line}\nquorum none\n")
        fault = found(prover, "cosigners", cosigners__policy_file=policy.name)
        assert what in fault["what"], fault


def test_workers_without_their_library(prover: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _name: None)
    fault = found(prover, "jobs", jobs__executor="procrastinate")
    assert "not installed" in fault["what"] and "extra procrastinate" in fault["expected"]


def test_the_bundled_embedder_without_its_library(
    prover: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    fault = found(prover, "embedder")
    assert "wordllama is not installed" in fault["what"]
    assert 'pip install "ragaudit-embedders[wordllama]"' in fault["expected"]


def test_a_queue_without_tables_and_one_without_workers(
    prover: Path, make_database: Callable[..., str]
) -> None:
    url = make_database("postgresql", prover_tables)
    changes = {"store__url": url, "jobs__executor": "procrastinate"}
    fault = found(prover, "jobs", **changes)
    assert "no tables" in fault["what"] and fault["expected"] == "migrate"
    opening.make_queue(load_settings(prover).jobs, JOBS, url)
    fault = found(prover, "jobs", **changes)
    assert "no worker is alive" in fault["what"] and "a worker" in fault["expected"]


@pytest.mark.parametrize(
    ("member", "value", "where"),
    [
        ("verifier__url", "htp://verifier", "verifier.url"),
        ("verifier__url", "http://me:s3cret@verifier", "verifier.url"),
        ("window__metric", "hamming", "window.metric"),
        ("sever", {"port": 1}, "sever"),
    ],
)
def test_a_mistake_of_form_ends_the_command(
    prover: Path, member: str, value: Any, where: str
) -> None:
    problem = run(prover, **{member: value})
    assert problem["problem"] == "malformed-settings" and where in problem["detail"]
    assert "s3cret" not in problem["detail"]


def test_secrets_that_others_may_read(prover: Path) -> None:
    (prover.parent / "keys/provider.key").chmod(0o644)
    fault = found(prover, "keys")
    assert "others may read" in fault["what"] and fault["expected"] == "mode 600"


@pytest.mark.parametrize("name", ["provider.key", "operator.sha256"])
def test_a_secret_file_with_something_else_in_it(prover: Path, name: str) -> None:
    (prover.parent / "keys" / name).write_text("zz-not-shown\n")
    fault = found(prover, "keys")
    assert fault["where"].endswith(name) and fault["expected"] == "64 digits 0-9a-f"
    assert "zz-not-shown" not in str(fault)


def test_a_database_that_others_may_read(prover: Path) -> None:
    (prover.parent / "prover.db").chmod(0o644)
    fault = found(prover, "permissions")
    assert fault["what"] == "others may read the database" and fault["expected"] == "mode 600"


class Handler(BaseHTTPRequestHandler):
    """Somebody at the port, a prover or not."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
        """Say nothing."""


@pytest.fixture
def serving() -> Iterator[Callable[[bytes], int]]:
    """Answers every request with these bytes; the port."""
    servers: list[tuple[HTTPServer, threading.Thread]] = []

    def start(body: bytes) -> int:
        handler = type("Answering", (Handler,), {"body": body})
        server = HTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return server.server_port

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("member", ["server__port", "operation__metrics_port"])
def test_a_port_that_another_process_has(
    prover: Path, serving: Callable[[bytes], int], member: str
) -> None:
    port = serving(b"hello")
    fault = found(prover, "listening", **{"server__port": 0, member: port})
    assert fault["where"] == f"127.0.0.1:{port}" and "already in use" in fault["what"]


def test_a_port_that_nobody_answers_at(prover: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        fault = found(prover, "listening", server__port=taken.getsockname()[1])
    assert "already in use" in fault["what"]


def test_the_service_itself_may_have_its_ports(
    prover: Path, serving: Callable[[bytes], int]
) -> None:
    own, watched = serving(b'{"status":"alive"}'), serving(b"# HELP ragaudit_requests_total")
    faults = run(prover, server__port=own, operation__metrics_port=watched)
    assert faults["listening"] == "good"


@pytest.fixture(scope="module")
def database() -> Iterator[postgresql_server.Server]:
    with pgvector_server.running() as server:
        server.create(DATABASE)
        server.create("bare")
        server.execute(
            "CREATE EXTENSION vector; CREATE ROLE nobody LOGIN; "
            "CREATE TABLE items (id text, content text, embedding vector(3), year int); "
            "INSERT INTO items SELECT n, 'row ' || n, '[1,2,3]', n FROM generate_series(1, 9) n",
            DATABASE,
        )
        yield server


@pytest.mark.parametrize(
    ("table", "dsn", "what"),
    [
        ({"table": "itmes"}, {}, "no such table or column"),
        ({"content": "body"}, {}, "no such table or column"),
        ({"id": "key"}, {}, "no such table or column"),
        ({"vector": "vec"}, {}, "no such table or column"),
        ({"attributes": "meta"}, {}, "no such table or column"),
        ({"attribute_columns": ["yaer"]}, {}, "no such table or column"),
        ({"schema": "nowhere"}, {}, "no such table or column"),
        ({"tenant_column": "owner", "tenant_value": "shop"}, {}, "no such table or column"),
        ({"vector": "year"}, {}, "the vector column is not one of vectors"),
        ({}, {"user": "nobody"}, "its user may not read the table"),
        ({}, {"dbname": "bare"}, "the database has no pgvector"),
        ({}, {"dbname": "none"}, "the database cannot be reached"),
        ({}, {"user": "stranger"}, "the database cannot be reached"),
        ({}, {"host": "/nowhere"}, "the database cannot be reached"),
    ],
)
def test_a_mistake_in_front_of_postgresql(
    prover: Path,
    database: postgresql_server.Server,
    table: dict[str, Any],
    dsn: dict[str, str],
    what: str,
) -> None:
    options = {"host": str(database.root), "dbname": DATABASE, "user": "ragaudit", **dsn}
    file = prover.parent / "dsn"
    file.write_text(" ".join(f"{name}={value}" for name, value in options.items()))
    file.chmod(0o600)
    tables = {"shop": {"table": "items", **table}}
    backend = {"kind": "pgvector", "pgvector": {"dsn_file": "dsn", "tables": tables}}
    fault = found(prover, "backend", backend=backend, embedder={"name": "none"})
    assert what in fault["what"] and fault["where"] == "tenant shop"
