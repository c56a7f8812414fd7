"""The verifier's settings and limits: secret files, states, capacity, sizes of bodies."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedSettings, RefusedError
from ragaudit.ledger.messages.bodies import (
    LONGEST,
    SHORT_BYTES,
    Body,
    CloseBody,
    CosignedBody,
    EntriesBody,
    OpeningBody,
    RecordsBody,
    RoundBody,
    StampsBody,
)
from ragaudit.verifier import settings
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.capacity import SPECIFIED, check_capacity, shortfalls
from ragaudit.verifier.service.windows import FINAL, State, check_state, check_transition
from ragaudit.verifier.settings import MIB, Limits
from verifier_service_harness import ORIGIN, WINDOW, VerifierScenario, problem_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    settings.write(
        tmp_path / "verifier.yaml",
        {"name": "regulator.example/cosigner", "data": "data", "secrets": "secrets"},
    )
    return tmp_path


def test_the_database_may_be_named_in_a_secret_file(folder: Path) -> None:
    path, secret = folder / "verifier.yaml", folder / "secrets/database.url"
    plain = path.read_text()
    path.write_text(plain + "database_file: secrets/database.url\n")
    with pytest.raises(MalformedSettings, match="cannot read a secret file"):
        settings.load(path)
    secret.write_text("sqlite:////other/verifier.db\n")
    secret.chmod(0o644)
    with pytest.raises(MalformedSettings, match="others may read"):
        settings.load(path)
    secret.chmod(0o600)
    assert settings.load(path).database_url == "sqlite:////other/verifier.db"
    path.write_text(plain + "database: sqlite:///a.db\ndatabase_file: secrets/database.url\n")
    with pytest.raises(MalformedSettings, match="both given"):
        settings.load(path)


@pytest.mark.parametrize(
    "url", ["https://me:s3cret@models.example/v1", "ftp://models.example", "https://a b.example"]
)
def test_the_embedding_service_is_named_without_a_password(folder: Path, url: str) -> None:
    path = folder / "verifier.yaml"
    endpoint = f"embedder: {{endpoint: {{url: '{url}', models: [m]}}}}\n"
    path.write_text(path.read_text() + endpoint)
    with pytest.raises(MalformedSettings, match="URL") as refused:
        settings.load(path)
    assert "s3cret" not in str(refused.value)


ALLOWED = {
    ("registered", "countersigned"),
    ("registered", "refused"),
    ("countersigned", "closed"),
    ("countersigned", "auditing"),
    ("closed", "challenged"),
    ("closed", "auditing"),
    ("challenged", "auditing"),
    ("auditing", "decided"),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_only_the_transitions_of_the_chapter(before: State, after: State) -> None:
    if (before.value, after.value) in ALLOWED:
        check_transition("w", before, after)
        return
    with pytest.raises(RefusedError, match=f"a {before} window cannot become {after}"):
        check_transition("w", before, after)


def test_nothing_follows_a_final_state() -> None:
    assert {before for before, _ in ALLOWED}.isdisjoint(state.value for state in FINAL)


def test_another_state_than_allowed_is_named() -> None:
    check_state("w", State.CLOSED, (State.CLOSED,))
    with pytest.raises(RefusedError, match="the window is closed"):
        check_state("w", State.CLOSED, FINAL)


def test_a_row_shows_the_latest_state_and_takes_no_step_twice(scenario: Any) -> None:
    scenario.register()
    steps = (State.COUNTERSIGNED, State.CLOSED, State.CHALLENGED, State.AUDITING, State.DECIDED)
    for state in steps:
        with scenario.service.database.write() as transaction:
            windows.advance(transaction, ORIGIN, state)
            assert windows.get(transaction.connection, ORIGIN).state is state
            with pytest.raises(RefusedError, match="cannot become"):
                windows.advance(transaction, ORIGIN, state)


# Slots and queries of the scenario are 4 each: a log of 38 entries, 22 of them beside records.
NEEDED = {
    "checkpoints": 38,
    "entries": 22,
    "records_bytes": 2**22 + 38 * (8 + 4096),
    "json_bytes": 22 * (2 * 4096 + 256),
}


def test_the_limits_as_shipped_are_the_specifications() -> None:
    chapter = Path(__file__).parents[3] / "docs" / "spec" / "08-services.md"
    (sentence,) = [
        paragraph.replace("\n", " ")
        for paragraph in chapter.read_text(encoding="utf-8").split("\n\n")
        if paragraph.startswith("*What V takes.*")
    ]
    assert f"{SPECIFIED.checkpoints:,} checkpoints" in sentence
    assert f"{SPECIFIED.entries:,} entries" in sentence
    assert f"{SPECIFIED.records_bytes:,} bytes" in sentence
    assert f"{SPECIFIED.submitted_bytes // MIB:,} MiB of each" in sentence
    assert f"{SPECIFIED.json_bytes // MIB} MiB in one call" in sentence
    assert list(shortfalls(Limits())) == []


def test_less_is_said_at_start(
    tmp_path: Path, auditor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    least: dict[str, Any] = dict.fromkeys(
        ["json_bytes", "anonymous_bytes", "dispute_bytes", "index_bytes", "records_bytes"], 1024
    )
    limits = Limits(**least, entries=1, checkpoints=1, version_bytes=1024, submitted_bytes=MIB)
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running(scenario.settings.model_copy(update={"limits": limits})):
        assert scenario.client.get("/readyz").status_code == 200
    said = [each.getMessage() for each in caplog.records if "limits." in each.getMessage()]
    assert len(said) == 9
    line = "limits.entries is 1, below the specification's 400000: windows that may need more"
    assert any(each.startswith(line) for each in said)


def test_a_window_that_would_fail_is_not_registered(tmp_path: Path, auditor: Any) -> None:
    for name, needed in NEEDED.items():
        scenario = VerifierScenario(tmp_path / name, auditor)
        own: dict[str, Any] = {name: needed - 1}
        with scenario.running(scenario.settings.model_copy(update={"limits": Limits(**own)})):
            said = problem_of(scenario.register(), 422, "rejected")["detail"]
            assert f"limits.{name} of this verifier is {needed - 1}" in said, name
            assert f"below the specification's {getattr(SPECIFIED, name)}" in said
        check_capacity(scenario.policy(), Limits(**{name: needed}))


def test_what_the_specification_itself_does_not_give_is_no_reason(
    tmp_path: Path, auditor: Any
) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    check_capacity(scenario.policy(queries_per_account=1_000_000), Limits())
    check_capacity({"slots": "many"}, Limits(entries=1))  # no policy: check 1 says so


def test_limits_that_shrink_after_the_registration_keep_it_from_being_countersigned(
    tmp_path: Path, auditor: Any
) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        assert scenario.register().status_code == 201
        scenario.put_indexes()
        scenario.service.registrar._limits = Limits(checkpoints=37)
        said = problem_of(scenario.countersign(), 422, "rejected")["detail"]
        assert "limits.checkpoints of this verifier is 37" in said
        shown = scenario.client.get(f"/v1/windows/{WINDOW}").json()
        assert shown["state"] == State.REGISTERED
        # Nothing was decided: with room again, the same window goes on.
        scenario.service.registrar._limits = Limits()
        assert scenario.countersign().status_code == 200


SIGNED: dict[type[Body], tuple[str, str]] = {
    EntriesBody: ("POST", "entries"),
    CosignedBody: ("POST", "cosigned"),
    StampsBody: ("POST", "time-stamps"),
    CloseBody: ("POST", "close"),
    RecordsBody: ("POST", "records"),
    RoundBody: ("POST", "rounds"),
    OpeningBody: ("POST", "countersign"),
}


def test_a_providers_body_is_no_longer_than_its_call_needs(scenario: VerifierScenario) -> None:
    scenario.register()
    calls = {
        path: (method, LONGEST.get(kind, SHORT_BYTES)) for kind, (method, path) in SIGNED.items()
    }
    calls["challenge"] = calls["records/parts"] = calls["claims"] = ("GET", SHORT_BYTES)
    for path, (method, most) in calls.items():
        answer = scenario.send(method, f"/v1/windows/w1/{path}", b" " * (most + 1))
        assert problem_of(answer, 413, "too-large")["expected"] == f"at most {most} bytes", path
        answer = scenario.send(method, f"/v1/windows/w1/{path}", b" " * most)
        assert answer.status_code != 413, path


def test_packed_bodies_are_refused_whoever_sends_them(scenario: VerifierScenario) -> None:
    scenario.register()
    for path, body in (("receipts", b"{}"), ("entries", b'{"entries":[]}')):
        target = f"/v1/windows/w1/{path}"
        headers = {**scenario.headers("POST", target, body), "Content-Encoding": "gzip"}
        answer: Any = scenario.client.post(target, content=body, headers=headers)
        problem_of(answer, 415, "unsupported-coding")
