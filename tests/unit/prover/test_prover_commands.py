"""The commands, the operator's API, the background threads, and docs/operations.md as it stands."""

import hashlib
import json
import stat
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chapters import DOCS, blocks, run_program, shell
from ragaudit.encoding.errors import InternalError, MalformedRequest, NotAuthenticated
from ragaudit.encoding.signing import PrivateKey
from ragaudit.prover.background import log_once
from ragaudit.prover.command.cli import app
from ragaudit.prover.command.operator_commands import emit_rows, read_overrides
from ragaudit.prover.errors import VerifierUnreachable
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.accounts import Accounts, Owners
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.serving.problems import status_of
from typer.testing import CliRunner

runner = CliRunner()


def run(*arguments: str | Path, code: int = 0) -> Any:
    result = runner.invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


def run_json(*arguments: str | Path, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", code=code).stdout)


@pytest.fixture
def prover(tmp_path: Path) -> Path:
    """The settings of a fresh prover."""
    folder = tmp_path / "prover"
    made = run_json("init", "--provider", "example.org", "--folder", folder)
    assert len(made["provider_key"]) == 64
    return folder / "prover.yaml"


def corpus(folder: Path, count: int = 8) -> Path:
    path = folder / "faq.jsonl"
    rows = [{"id": f"q{n}", "text": f"answer number {n}"} for n in range(count)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_init_makes_private_files_and_replaces_nothing(prover: Path) -> None:
    for file in (prover.parent / "keys").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = run_json("init", "--provider", "example.org", "--folder", prover.parent, code=2)
    assert again["problem"] == "malformed-settings"
    bad = run_json("init", "--provider", "Not A Name", "--folder", prover.parent / "x", code=2)
    assert "provider" in bad["detail"]


def test_secrets_are_not_printed(prover: Path) -> None:
    secrets = [file.read_text().strip() for file in (prover.parent / "keys").iterdir()]
    output = run("check", "--settings", prover, code=1).output
    assert not any(secret in output for secret in secrets)


def test_ingest_and_accounts(prover: Path, tmp_path: Path) -> None:
    faq = corpus(tmp_path)
    assert run_json("ingest", "shop", faq, "--settings", prover)["documents"] == 8
    assert run_json("ingest", "shop", faq, "--settings", prover, code=2)["problem"] == (
        "malformed-document"
    )
    replaced = run_json("ingest", "shop", faq, "--settings", prover, "--replace")
    assert replaced == {"tenant": "shop", "added": 8, "documents": 8}
    added = run_json("account", "add", "shop", "ada", "--settings", prover)
    rotated = run_json("account", "rotate-key", "ada", "--settings", prover)
    assert added["key"] != rotated["key"]
    (row,) = run_json("account", "list", "--settings", prover)
    assert row == {"tenant": "shop", "name": "ada"}
    assert "ada" in run("account", "list", "--settings", prover).stdout
    run_json("account", "add", "none", "bob", "--settings", prover, code=4)
    run_json("account", "add", "shop", "ada", "--settings", prover, code=4)
    run_json("account", "rotate-key", "eve", "--settings", prover, code=4)
    named = {"tenant": "shop", "name": "ada", "user": "Zoë K."}
    user = ("--user", "Zoë K.", "--settings", prover)
    assert run_json("account", "add", "shop", "ada", *user) == named
    assert named in run_json("account", "list", "--settings", prover)
    assert "Zoë K." in run("account", "list", "--settings", prover).stdout
    for wrong in (("none", "ada"), ("shop", "eve")):
        run_json("account", "add", *wrong, *user, code=4)
    run_json("account", "add", "shop", "ada", "--user", "a\x1b[2J", "--settings", prover, code=2)


def test_the_key_of_a_tenants_owner(prover: Path, tmp_path: Path) -> None:
    """One key of each tenant: given again it is another one, revoked it is nobody's."""
    run("ingest", "shop", corpus(tmp_path), "--settings", prover)
    keys = [run_json("tenant", "key", "shop", "--settings", prover)["key"] for _ in range(2)]
    with closing(Store.open(load_settings(prover).store.url)) as store:
        owners = Owners(store)
        assert owners.authenticate(keys[1]) == "shop"
        assert owners.key_digests() == {hashlib.sha256(keys[1].encode()).digest(): "shop"}
        for stranger in (keys[0], "", Accounts(store).add("shop", "ada")):
            with pytest.raises(NotAuthenticated, match="unknown API key of an owner"):
                owners.authenticate(stranger)
        revoked = run_json("tenant", "key", "shop", "--revoke", "--settings", prover)
        assert revoked == {"tenant": "shop", "revoked": True}
        with pytest.raises(NotAuthenticated):
            owners.authenticate(keys[1])
    for arguments in (("none",), ("shop", "--revoke")):
        found = run_json("tenant", "key", *arguments, "--settings", prover, code=4)
        assert found["problem"] == "unknown-tenant"


def test_dispute_keys_of_accounts(prover: Path, tmp_path: Path) -> None:
    """Whose private parts are elsewhere; another one takes its place."""
    run("ingest", "shop", corpus(tmp_path), "--settings", prover)
    run("account", "add", "shop", "ada", "--settings", prover)
    one, two = (PrivateKey.generate().public.raw.hex() for _ in range(2))
    run_json("account", "add", "shop", "eva", "--dispute-key", one, "--settings", prover)
    run_json("account", "dispute-key", "ada", one, "--settings", prover)
    run_json("account", "dispute-key", "ada", two, "--settings", prover)
    rows = run_json("account", "list", "--settings", prover)
    assert [each["dispute_key"] for each in rows] == [two, one]
    for call in (("add", "shop", "fay", "--dispute-key", "zz"), ("dispute-key", "ada", "00" * 32)):
        run("account", *call, "--settings", prover, code=2)
    both = ("account", "add", "shop", "ada", "--user", "gus", "--dispute-key", one)
    assert "--dispute-key" in run_json(*both, "--settings", prover, code=2)["detail"]
    run_json("account", "dispute-key", "nobody", one, "--settings", prover, code=4)


def test_check_names_what_is_wrong(prover: Path, tmp_path: Path) -> None:
    found = run_json("check", "--settings", prover, code=1)
    assert found["keys"] == found["store"] == found["embedder"] == found["noise"] == "good"
    assert found["documents"] == {
        "what": "no tenant has documents", "where": "backend", "expected": "ragaudit prover ingest",
    }  # fmt: skip
    run("ingest", "shop", corpus(tmp_path, 3), "--settings", prover)
    found = run_json("check", "--settings", prover, code=1)
    assert found["documents"]["what"] == "3 documents"
    assert found["documents"]["where"] == "tenant shop"
    assert found["documents"]["expected"] == "more than top_k_max = 5"
    assert "reached" in found["verifier"]["what"]
    (prover.parent / "keys/provider.key").chmod(0o644)
    found = run_json("check", "--settings", prover, code=1)
    assert "others may read" in found["keys"]["what"] and found["keys"]["expected"] == "mode 600"


def test_check_names_what_cannot_be_written_or_may_be_read(prover: Path) -> None:
    assert run_json("check", "--settings", prover, code=1)["permissions"] == "good"
    database = prover.parent / "prover.db"
    database.chmod(0o644)
    found = run_json("check", "--settings", prover, code=1)["permissions"]
    assert found["what"] == "others may read the database" and found["where"] == str(database)
    database.chmod(0o600)
    text = prover.read_text()
    prover.write_text(text + "operation: {audit_file: none/audit.jsonl}\n")
    found = run_json("check", "--settings", prover, code=1)["permissions"]
    assert found["where"] == str(prover.parent / "none")
    assert found["what"] == "cannot be written by this user"


def test_check_wants_what_the_settings_ask_for(
    prover: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prover.write_text(prover.read_text() + "operation: {trace_url: 'http://127.0.0.1:4318'}\n")
    monkeypatch.setitem(sys.modules, "ragaudit.serving.spans", None)
    found = run_json("check", "--settings", prover, code=1)["operation"]
    assert "extra otel" in found["expected"]


def test_a_database_that_is_gone_or_full_is_told(prover: Path) -> None:
    prover.write_text(
        prover.read_text().replace(
            "  fence_folder:", "  free_bytes_min: 1125899906842624\n  fence_folder:"
        )
    )
    assert "disk is full" in run_json("check", "--settings", prover, code=1)["disk"]["what"]
    (prover.parent / "prover.db").unlink()
    found = run_json("check", "--settings", prover, code=1)
    assert found["store"]["expected"] == "ragaudit prover migrate" == found["disk"]["expected"]


def test_commands_without_a_service(prover: Path) -> None:
    for arguments in (("start", "w1"), ("close", "w1"), ("status", "w1")):
        failed = run_json("window", *arguments, "--settings", prover, code=3)
        assert failed["problem"] == "service-unreachable"
    (prover.parent / "prover.db").unlink()
    run_json("account", "list", "--settings", prover, code=3)
    run("account", "list", "--settings", prover.parent / "none.yaml", code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("account",),
        ("tenant",),
        ("tenant", "key", "--help"),
        ("window",),
        *((name, "--help") for name in ("init", "migrate", "ingest", "check", "serve")),
        *(("account", name, "--help") for name in ("add", "dispute-key", "rotate-key", "list")),
        *(("window", name, "--help") for name in ("start", "close", "status")),
    ],
)
def test_help_has_an_example(arguments: tuple[str, ...]) -> None:
    assert "Example: " in runner.invoke(app, list(arguments)).output


def test_overrides() -> None:
    found = read_overrides(["sigma=2", "audit.mode=A", "audit.beta=0.1", "epsilon_acc=null"])
    assert found == {"sigma": 2, "audit": {"mode": "A", "beta": "0.1"}, "epsilon_acc": None}
    with pytest.raises(MalformedRequest):
        read_overrides(["sigma"])


def test_statuses() -> None:
    assert status_of(MalformedRequest("x")) == 400
    assert status_of(NotAuthenticated("x")) == 401
    assert status_of(InternalError("x")) == 500


def test_the_operators_api(open_scenario: Any) -> None:
    scenario = open_scenario
    api, operator = scenario.api, scenario.operator
    made = {"tenant": "two", "name": "eve"}
    key = api.post("/v1/operator/accounts", json=made, headers=operator).json()["key"]
    assert scenario.service.accounts.authenticate(key).name == "eve"
    fresh = api.post("/v1/operator/accounts/eve/key", headers=operator).json()["key"]
    assert scenario.service.accounts.authenticate(fresh).name == "eve"
    assert {"tenant": "two", "name": "eve"} in api.get(
        "/v1/operator/accounts", headers=operator
    ).json()
    named = {**made, "user": "grace"}
    assert api.post("/v1/operator/accounts", json=named, headers=operator).json() == named
    assert named in api.get("/v1/operator/accounts", headers=operator).json()
    for wrong in ({**named, "name": "ada"}, {**named, "name": "nobody"}):
        assert api.post("/v1/operator/accounts", json=wrong, headers=operator).status_code == 404
    unprintable = {**named, "user": "a\nb"}
    refused = api.post("/v1/operator/accounts", json=unprintable, headers=operator)
    assert refused.status_code == 400 and "end user" in refused.json()["where"]
    status = api.get("/v1/operator/windows/w1", headers=operator).json()
    assert (status["state"], status["accounts"], status["busy"]) == ("open", 3, None)
    again = {"window": "w1", "overrides": {}}
    refused = api.post("/v1/operator/windows", json=again, headers=operator)
    assert refused.status_code == 409 and "w1: this name was used" in refused.json()["detail"]
    unknown = {"window": "w2", "overrides": {"surprise": 1}}
    refused = api.post("/v1/operator/windows", json=unknown, headers=operator)
    assert refused.status_code == 400 and "surprise" in refused.json()["where"]
    for headers in ({}, {"Authorization": "Bearer x"}, scenario.headers("ada")):
        assert api.get("/v1/operator/accounts", headers=headers).status_code == 401


def test_what_everybody_sees(open_scenario: Any) -> None:
    scenario = open_scenario
    assert scenario.api.get("/healthz").json() == {"status": "alive"}
    assert scenario.api.get("/readyz").json() == {"status": "ready"}
    (shown,) = scenario.api.get("/v1/windows").json()
    assert shown == scenario.api.get("/v1/windows/w1").json()
    assert scenario.api.get("/v1/windows?served=true").json() == [shown]
    assert set(shown) == {
        "window", "state", "policy", "policy_digest", "countersignature", "opening", "embedder",
        "activations", "versions", "epochs",
    }  # fmt: skip
    secrets = scenario.service.windows.get("w1")
    text = json.dumps(shown)
    assert secrets.noise_seed.hex() not in text and secrets.pseudonym_key.hex() not in text
    checkpoint = scenario.api.get("/v1/windows/w1/log/checkpoint")
    assert checkpoint.text.startswith("provider.example/ragaudit/w1\n4\n")
    assert len(scenario.api.get("/v1/windows/w1/log/tile/0/000.p/4").content) == 4 * 32


def test_threads_open_a_window_by_themselves(scenario: Any) -> None:
    scenario.service.start()
    body = {"window": "w1", "overrides": {"sigma": "40", "epsilon_acc": None, "slots": 4}}
    made = scenario.api.post("/v1/operator/windows", json=body, headers=scenario.operator)
    assert made.status_code == 201, made.text
    wait(lambda: scenario.state() is State.COUNTERSIGNED)
    scenario.register("ada")
    wait(lambda: scenario.service.open_windows.get("w1").log.checkpoints.covering(1) is not None)
    scenario.clock.at(scenario.policy().start)
    wait(lambda: scenario.state() is State.OPEN)
    public = scenario.ask().json()["public"]
    wait(
        lambda: (
            scenario.api.get(f"/v1/windows/w1/receipts/{public['index']}/proof").status_code == 200
        )
    )


def test_failed_steps_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    logged = log_once("w1", VerifierUnreachable("away"), "")
    assert log_once("w1", VerifierUnreachable("away"), logged) == logged
    log_once("w1", ValueError("a secret"), logged)
    assert [each.message for each in caplog.records] == ["window w1: away", "window w1: ValueError"]


def wait(condition: Any) -> None:
    import time

    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


CHAPTER = (DOCS / "operations.md").read_text()


@pytest.fixture
def chapter_files(tmp_path: Path) -> Path:
    (tmp_path / "manual.md").write_text(
        "# Returns\nSend it back.\n# Hours\nNine to five.\n# Price\nIt is free.\n"
    )
    rows = [f'{{"id": "q{n}", "text": "answer number {n}"}}' for n in range(4)]
    (tmp_path / "faq.jsonl").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.slow
def test_the_chapters_commands_and_program_run(chapter_files: Path) -> None:
    output = shell(blocks(CHAPTER, "sh")[0], chapter_files)
    assert "provider_key: " in output and '"name": "ada"' in output
    program = [sys.executable, str(DOCS.parent / "examples" / "embed_prover.py")]
    assert run_program(program, chapter_files).strip() == "alive ready"


def test_rows_style_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of accounts and reasons of others are shown as they are."""
    emit_rows([{"account": "[red]ada[/]"}], as_json=False)
    assert "[red]ada[/]" in capsys.readouterr().out
