"""The commands: what they write, print and exit with."""

import json
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from procedure_cases import audit, use_cached_table
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.window import Window
from ragaudit.verifier import keys, settings
from ragaudit.verifier.bundle import write_bundle
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS, CheckResult, Outcome, Status
from ragaudit.verifier.service import providers
from recording_auditor import RecordingAuditor
from typer.testing import CliRunner
from verifier_service_harness import (
    EMBEDDER,
    NAME,
    ORIGIN,
    PROVIDER,
    SAMPLING,
    WINDOW,
    VerifierScenario,
)

runner = CliRunner()


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result.output.lstrip()  # the progress line leaves an empty one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run("init", "--name", NAME, "--directory", tmp_path, "--port", 9000)
    return tmp_path


def test_init(folder: Any) -> None:
    loaded = settings.load(folder / "verifier.yaml")
    assert (loaded.name, loaded.listen.port) == (NAME, 9000)
    assert loaded.secrets == folder / "secrets"
    assert stat.S_IMODE((folder / "verifier.yaml").stat().st_mode) == 0o600
    assert loaded.database_url == f"sqlite:///{folder / 'data' / 'verifier.db'}"
    files = sorted(path.name for path in loaded.secrets.iterdir())
    assert files == [
        "activation.key", "auditor-token", "auditor-token.sha256", "cosigner.key", "verdict.key",
        "verifier.key",
    ]  # fmt: skip
    for path in loaded.secrets.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    held = keys.load(loaded.secrets, NAME)
    token = keys.read_token(loaded.secrets / keys.TOKEN)
    assert keys.token_digest(token) == held.token_digest
    assert len({held.cosigner.private.seed(), held.statement.seed(), held.verdict.seed()}) == 3


def test_init_shows_public_keys_only(tmp_path: Path) -> None:
    output = run("init", "--name", NAME, "--directory", tmp_path)
    held = keys.load(tmp_path / "secrets", NAME)
    for public in held.public().values():
        assert public is None or public in output
    for path in (tmp_path / "secrets").iterdir():
        assert path.read_text().strip() not in output


def test_init_overwrites_nothing(folder: Any) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert "exist" in run("init", "--name", NAME, "--directory", folder, code=4)
    (folder / "verifier.yaml").unlink()
    assert "exist" in run("init", "--name", NAME, "--directory", folder, code=4)
    for path, content in before.items():
        if path.name != "verifier.yaml":
            assert path.read_bytes() == content


def test_init_needs_a_key_name(tmp_path: Path) -> None:
    run("init", "--name", "not a name", "--directory", tmp_path, code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["__LISTN__PORT", "__LISTEN__PROT", "_LISTEN_PORT", "__LISTEN"])
def test_variables_that_set_nothing_are_refused(
    folder: Any, monkeypatch: pytest.MonkeyPatch, name: Any
) -> None:
    monkeypatch.setenv(f"RAGAUDIT_VERIFIER{name}", "x")
    run("provider", "list", "--settings", folder / "verifier.yaml", code=2)


def test_providers(folder: Any) -> None:
    path = ("--settings", folder / "verifier.yaml")
    key = PrivateKey.generate().public.raw.hex()
    run("provider", "add", "acme", "--key", key, *path)
    assert run("provider", "list", *path) == f"acme {key}\n"
    listed = json.loads(run("provider", "list", "--json", *path))
    assert [(each["name"], each["key"]) for each in listed] == [("acme", key)]
    assert "another key" in run("provider", "add", "acme", "--key", "01" * 31 + "02", *path, code=4)
    assert "hexadecimal" in run("provider", "add", "b", "--key", "zz", *path, code=2)
    run("provider", "remove", "acme", *path)
    assert run("provider", "list", *path) == ""
    run("provider", "remove", "acme", *path, code=4)


@pytest.mark.parametrize(
    "text",
    [
        "", "- a", "name: x", "name: x\ndata: d\nsecrets: s\nunknown: 1",
        "name: x\ndata: d\nsecrets: s\nlisten: {port: 70000}",
        "name: x\ndata: d\nsecrets: s\nengine: fast", "name: [", "1: 2",
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "verifier.yaml"
    path.write_text(text)
    assert run("provider", "list", "--settings", path, code=2).startswith("error: ")


def test_missing_settings(tmp_path: Path) -> None:
    run("provider", "list", "--settings", tmp_path / "none.yaml", code=2)
    run("serve", "--settings", tmp_path / "none.yaml", code=2)
    run("audit", "w", "--settings", tmp_path / "none.yaml", code=2)


def test_the_environment_overrides_the_file(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAUDIT_VERIFIER__LISTEN__PORT", "9999")
    monkeypatch.setenv("RAGAUDIT_VERIFIER__ENGINE", "reference")
    loaded = settings.load(folder / "verifier.yaml")
    assert (loaded.listen.port, loaded.listen.host) == (9999, "127.0.0.1")
    assert loaded.engine == "reference"
    monkeypatch.setenv("RAGAUDIT_VERIFIER__LISTEN__PORT", "none")
    run("provider", "list", "--settings", folder / "verifier.yaml", code=2)


@pytest.mark.parametrize(
    ("name", "content", "mode"),
    [
        ("cosigner.key", None, 0),
        ("cosigner.key", "00", 0o600),
        ("verdict.key", "secret rubbish", 0o600),
        ("verifier.key", "ab" * 33, 0o600),
        ("activation.key", "AB" * 32, 0o600),
        ("auditor-token.sha256", "", 0o600),
        ("cosigner.key", "ab" * 32, 0o644),
        ("cosigner.key", "ab" * 32, 0o620),
    ],
)
def test_secrets_that_cannot_be_used(folder: Any, name: Any, content: Any, mode: Any) -> None:
    path = folder / "secrets" / name
    path.unlink()
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    output = run("serve", "--settings", folder / "verifier.yaml", code=2)
    assert output.startswith("error: ") and (not content or content not in output)


def test_no_representation_shows_a_secret(folder: Any) -> None:
    held = keys.load(folder / "secrets", NAME)
    shown = repr(held)
    for path in (folder / "secrets").iterdir():
        text = path.read_text().strip()
        assert text not in shown
        if path.name.endswith("key"):
            assert repr(bytes.fromhex(text)) not in shown


def test_serve_refuses_positions_that_are_none(folder: Any) -> None:
    """A path of the settings is the file's; what it holds has one right digest."""
    path = folder / "verifier.yaml"
    path.write_text(path.read_text() + "positions: positions.bin\n")
    missing = run("serve", "--settings", path, code=2)
    assert "cannot read" in missing and str(folder / "positions.bin") in missing
    (folder / "positions.bin").write_bytes(bytes(64))
    assert "positions: 64 bytes" in run("serve", "--settings", path, code=2)


def test_serve_says_what_is_wrong(folder: Any) -> None:
    path = folder / "verifier.yaml"
    assert "engine" in run("serve", "--settings", path, "--engine", "fast", code=2)
    path.write_text(path.read_text().replace("port: 9000", "port: 9000\n  tls_key: key.pem"))
    assert "TLS" in run("serve", "--settings", path, code=2)


class SigningAuditor(RecordingAuditor):
    """An auditor that signs a verdict of a given result."""

    key: PrivateKey

    def __init__(self, decided: str) -> None:
        super().__init__()
        self.decided = decided
        self.go = threading.Event()

    def audit(self, evidence: Any, now: Any, progress: Any) -> Any:
        progress("policy", 0, 2)
        assert self.go.wait(30)
        check = CheckResult(1, "policy", "Policy", Status.PASS, "as [it] should be")
        counted = Status.FAIL if self.decided == "REFUSED" else Status(self.decided)
        coalition = CheckResult(20, "coalition", "Coalition", counted, "counted")
        outcome = Outcome(WINDOW, "acme", "core", self.decided, True, (check, coalition))
        return outcome.sign(self.key, evidence.digests(), time=now)

    def result(self, verdict: Any) -> Any:
        return self.decided


@contextmanager
def served(scenario: VerifierScenario) -> Iterator[str]:
    """The scenario's application behind a real socket."""
    config = uvicorn.Config(scenario.client.app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            threading.Event().wait(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def at(scenario: VerifierScenario, url: str) -> tuple[object, ...]:
    """The options of an auditor who has the token and pins nothing."""
    token = scenario.settings.secrets / keys.TOKEN
    return ("--url", url, "--token-file", token, "--allow-unpinned")


@contextmanager
def signing(
    folder: Path, decided: str
) -> Iterator[tuple[VerifierScenario, SigningAuditor, tuple[object, ...]]]:
    """A served, open window whose auditor signs; and the options to reach it."""
    auditor = SigningAuditor(decided)
    scenario = VerifierScenario(folder, auditor)
    auditor.key = scenario.keys.verdict
    with scenario.running(), served(scenario) as url:
        scenario.open_window()
        yield scenario, auditor, at(scenario, url)


@pytest.mark.parametrize(
    ("decided", "code"), [("PASS", 0), ("FAIL", 1), ("EXCEEDED", 6), ("REFUSED", 4)]
)
def test_audit(tmp_path: Path, decided: Any, code: Any) -> None:
    with signing(tmp_path, decided) as (scenario, auditor, there):
        assert "not pinned" in run("audit", WINDOW, *there[:-1], code=2)
        assert "409" not in run("audit", WINDOW, *there, code=5)
        scenario.clock.at(SAMPLING)
        scenario.service.sampler.sign_list(ORIGIN)
        threading.Timer(0.3, auditor.go.set).start()
        output = run("audit", WINDOW, *there, code=code)
        for words in (f"result: {decided}", "as [it] should be", "WORTHLESS"):
            assert words in output
        predicate = json.loads(run("audit", WINDOW, "--json", *there, code=code))
        assert predicate["result"] == decided
        right = scenario.keys.verdict.public.raw.hex()
        run("audit", WINDOW, "--verdict-key", right, *there, code=code)
        wrong = scenario.keys.statement.public.raw.hex()
        assert "key" in run("audit", WINDOW, "--verdict-key", wrong, *there, code=1)
        run("audit", "w9", *there, code=4)


def test_audit_of_a_name_that_two_providers_use(tmp_path: Path) -> None:
    """Neither that the audit is not due, nor the audit of whichever window."""
    scenario, own = VerifierScenario(tmp_path, RecordingAuditor()), PrivateKey.generate()
    with scenario.running(), served(scenario) as url:
        scenario.open_window()
        providers.add(scenario.service.database, "other", own.public)
        policy = scenario.policy(provider="other")
        policy["keys"] = {**policy["keys"], "provider": own.public.raw.hex()}
        scenario.provider, scenario.provider_key = "other", own
        document = {"policy": policy, "embedder": EMBEDDER.to_json()}
        assert scenario.send("POST", "/v1/windows", document).status_code == 201
        there = at(scenario, url)
        for wait in ((), ("--wait",)):
            assert "several providers" in run("audit", WINDOW, *wait, *there, code=4)
        assert "countersigned" in run("audit", WINDOW, "--provider", PROVIDER, *there, code=5)
        assert "registered" in run("audit", WINDOW, "--provider", "other", *there, code=5)


def test_audit_waits(tmp_path: Path) -> None:
    with signing(tmp_path, "PASS") as (scenario, auditor, there):
        auditor.go.set()

        def pass_time() -> None:
            scenario.clock.at(SAMPLING)
            scenario.service.scheduler.tick()

        threading.Timer(0.3, pass_time).start()
        assert "PASS" in run("audit", WINDOW, "--wait", *there)


def test_audit_without_a_service(folder: Any) -> None:
    there = ("--settings", folder / "verifier.yaml", "--url", "http://127.0.0.1:1")
    assert run("audit", "w1", *there, code=3).startswith("error: ")


def test_audit_with_a_wrong_token(tmp_path: Path) -> None:
    scenario = VerifierScenario(tmp_path, RecordingAuditor())
    wrong = tmp_path / "token"
    wrong.write_text("not the token")
    wrong.chmod(0o600)
    with scenario.running(), served(scenario) as url:
        scenario.open_window()
        there = ("--url", url, "--token-file", wrong, "--allow-unpinned")
        run("audit", WINDOW, *there, code=4)
        wrong.chmod(0o644)
        assert "others" in run("audit", WINDOW, *there, code=2)


@lru_cache(maxsize=1)
def audited_window() -> tuple[Window, Evidence, Outcome]:
    """An honest window whose auditor has no embedder."""
    use_cached_table()
    window = Window()
    items = window.items()
    return window, Evidence.of(items), audit(items, window, with_embedder=False)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles of an honest window: all.zip, public.zip."""
    window, evidence, outcome = audited_window()
    time = 1_900_000_500_000
    signed = outcome.sign(window.verdict_key, evidence.digests(), time=time)
    folder = tmp_path_factory.mktemp("bundles")
    write_bundle(folder / "all.zip", evidence, signed, part="all")
    write_bundle(folder / "public.zip", evidence, signed, part="public")
    (folder / "key").write_text(window.verdict_key.public.raw.hex())
    return folder


def test_recheck(audited: Any) -> None:
    output = run("recheck", audited / "all.zip", "--verdict-key", (audited / "key").read_text())
    stands = (
        "the verdict stands: PASS, integrity PASS, privacy PASS "
        "(21 of 21 checks and 8 of 8 proofs repeated)"
    )
    assert output.startswith(stands)
    found = json.loads(run("recheck", audited / "all.zip", "--require", "all", "--json"))
    assert (found["stands"], found["complete"], found["not_repeated"]) == (True, True, [])


def test_a_re_check_of_a_part_has_an_exit_code_of_its_own(audited: Any) -> None:
    found = json.loads(run("recheck", audited / "all.zip", "--records", 1, "--json", code=5))
    assert (found["stands"], found["complete"], found["part"]) == (True, False, "all")
    assert found["repeated"] == {"checks": [18, 21], "proofs": [1, 8]}
    assert len(found["checks"]) == sum(not check.asked_by for check in CHECKS)
    output = run("recheck", audited / "public.zip", code=5)
    assert output.startswith(
        "nothing differs, but not everything was repeated: 9 of 21 checks and 0 of 8 proofs"
    )
    assert "not repeated: check 19 selection: needs the confidential part" in output
    found = json.loads(run("recheck", audited / "public.zip", "--json", code=5))
    assert (found["part"], found["stands"], found["complete"]) == ("public", True, False)


def test_require_all_does_not_begin_what_it_cannot_finish(audited: Any) -> None:
    output = run("recheck", audited / "public.zip", "--require", "all", code=5)
    assert "the bundle has the public part only" in output and "nothing differs" not in output
    output = run("recheck", audited / "all.zip", "--records", 1, "--require", "all", code=5)
    assert "only 1 of 8 sampled records" in output
    run("recheck", audited / "all.zip", "--records", 99, "--require", "all")


def test_a_verdict_that_does_not_stand(audited: Any, tmp_path: Path) -> None:
    window, evidence, outcome = audited_window()
    checks = tuple(replace(c, status=Status.FAIL) if c.id == "log" else c for c in outcome.checks)
    failed = replace(outcome, checks=checks, result="FAIL")
    false = failed.sign(window.verdict_key, evidence.digests(), time=2 * 10**12)
    write_bundle(tmp_path / "b.zip", evidence, false, part="all")
    output = run("recheck", tmp_path / "b.zip", code=1)
    assert output.startswith("THE VERDICT DOES NOT STAND: result: signed FAIL, recomputed PASS")


def test_recheck_refuses(audited: Any, tmp_path: Path) -> None:
    other = PrivateKey.generate().public.raw.hex()
    run("recheck", audited / "all.zip", "--verdict-key", other, code=1)
    for arguments in ((audited / "none.zip",), (audited / "all.zip", "--engine", "fast")):
        run("recheck", *arguments, code=2)
    data = bytearray((audited / "all.zip").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged.zip").write_bytes(data)
    run("recheck", tmp_path / "damaged.zip", code=2)


def test_every_command_has_an_example() -> None:
    for command in ("init", "migrate", "serve", "audit", "recheck"):
        assert "Example:" in run(command, "--help")
    for command in ("add", "list", "remove"):
        assert "Example:" in run("provider", command, "--help")
