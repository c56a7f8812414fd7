"""Every fault of an operator's commands is one line and the exit code of its kind."""

import socket
from pathlib import Path

import httpx
import pytest
from ragaudit.encoding.commands import ExitCode
from ragaudit.http import HttpClient
from ragaudit.prover.command.cli import app
from typer.testing import CliRunner

BAD_INPUT, UNAVAILABLE, REFUSED = ExitCode.BAD_INPUT, ExitCode.UNAVAILABLE, ExitCode.REFUSED
DATABASES = [
    ("", BAD_INPUT),
    ("nonsense", BAD_INPUT),
    ("://", BAD_INPUT),
    ("sqlite://", BAD_INPUT),
    ("sqlite:///:memory:", BAD_INPUT),
    ("mysql://root:secret@localhost/x", BAD_INPUT),
    ("postgresql+nodriver://root:secret@localhost/x", BAD_INPUT),
    ("postgresql+asyncpg://root:secret@localhost/x", BAD_INPUT),
    ("postgresql://root:secret@localhost:port/x", BAD_INPUT),
    ("sqlite+nodriver:///x.db", BAD_INPUT),
    ("sqlite:////nowhere/at/all/x.db", UNAVAILABLE),
]


def run(*arguments: str | Path) -> tuple[int, str]:
    """Return exit code and error output; a traceback is an exception other than SystemExit."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("p") / "prover"
    assert run("init", "--provider", "a", "--folder", folder)[0] == 0
    return folder / "prover.yaml"


@pytest.mark.parametrize(("url", "code"), DATABASES)
@pytest.mark.parametrize("command", [("serve",), ("account", "list")])
def test_databases(
    settings: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str], url: str, code: int
) -> None:
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", url)
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__PORT", "0")
    found, text = run(*command, "--settings", settings)
    assert found == code and text.startswith("error: ") and text.count("\n") == 1, text
    assert "secret" not in text


def test_a_missing_postgresql_driver_is_named(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", "postgresql+pg8000://localhost/x")
    code, text = run("account", "list", "--settings", settings)
    assert code == BAD_INPUT and "pg8000 is not installed" in text and "pip install" in text


@pytest.mark.parametrize("url", ["not a url", "ftp://host", "http://", "http://h:x", "//host", ""])
def test_init_wants_a_url(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "new"
    code, text = run("init", "--provider", "a", "--folder", folder, "--verifier", url)
    assert code == BAD_INPUT and "http://host:port" in text
    assert not folder.exists()  # nothing is half-made


def test_init_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, text = run("init", "--provider", "a", "--folder", tmp_path / "file" / "x")
    assert code == UNAVAILABLE and "cannot write" in text


def test_serve_on_a_taken_port(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__PORT", str(taken.getsockname()[1]))
        code, text = run("serve", "--settings", settings)
    assert code == UNAVAILABLE and "address already in use" in text


def test_serve_with_a_bad_log_level(settings: Path) -> None:
    code, text = run("serve", "--settings", settings, "--log-level", "loud")
    assert code == BAD_INPUT and "debug, info, warning, error" in text


def test_a_verifier_that_is_not_pinned(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__PORT", "0")
    code, text = run("serve", "--settings", settings)
    assert code == REFUSED
    assert "verifier.cosigner_key" in text and "whichever server answers first is trusted" in text
    assert "verifier.allow_unpinned: true" in text


def test_fences_where_none_can_be_written(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__FENCE_FOLDER", str(tmp_path / "file" / "x"))
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__PORT", "0")
    monkeypatch.setenv("RAGAUDIT_PROVER__VERIFIER__ALLOW_UNPINNED", "true")
    code, text = run("serve", "--settings", settings)
    assert code == UNAVAILABLE and "cannot write" in text


def test_certificates_that_are_none(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__PORT", "0")
    (tmp_path / "ca.pem").write_text("none")
    for file in (tmp_path / "ca.pem", tmp_path / "missing.pem"):
        monkeypatch.setenv("RAGAUDIT_PROVER__VERIFIER__CA_FILE", str(file))
        code, text = run("serve", "--settings", settings)
        assert code == BAD_INPUT and "expected a PEM file" in text


def test_a_bad_url_of_the_service(settings: Path) -> None:
    code, text = run("window", "list", "--settings", settings, "--url", "localhost:8080")
    assert code == BAD_INPUT and "--url" in text


def test_something_else_on_the_services_port(settings: Path) -> None:
    code, text = run("window", "list", "--settings", settings, "--url", "http://127.0.0.1:1")
    assert code == UNAVAILABLE and "ragaudit prover serve" in text


def test_what_the_service_answers_has_the_code_of_its_kind(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail = "overrides: nosuch: no such setting"
    kinds = {
        400: BAD_INPUT, 413: BAD_INPUT, 422: BAD_INPUT, 401: REFUSED, 404: REFUSED, 409: REFUSED,
        425: REFUSED, 429: REFUSED, 500: UNAVAILABLE, 502: UNAVAILABLE, 503: UNAVAILABLE,
    }  # fmt: skip
    for status, code in kinds.items():
        answer = httpx.Response(status, json={"detail": detail})
        monkeypatch.setattr(HttpClient, "request", lambda *_, answer=answer, **__: answer)
        for command in (("start", "w1", "--set", "nosuch=1"), ("status", "w1"), ("delete", "w1")):
            found, text = run("window", *command, "--settings", settings)
            said = "--set nosuch: no such setting" in text
            assert (found, said) == (code, True), (status, command, text)


def test_what_is_no_assignment_names_the_option(settings: Path) -> None:
    for text in ("sigma", "=1", ""):
        code, said = run("window", "start", "w", "--set", text, "--settings", settings)
        assert code == BAD_INPUT and f"--set: not an assignment: {text!r}" in said
