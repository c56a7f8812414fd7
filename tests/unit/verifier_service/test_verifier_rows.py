"""What opens sampled rows, as the verifier takes it: whose, when and how much (spec 9.11)."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.lab.scenario.policy import COUNTERSIGNED, DEADLINE_SECONDS, INSTANTS
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.commitments import longest_rows
from ragaudit.ledger.messages.items import rows_name
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive
from ragaudit.verifier.engines import engine
from ragaudit.verifier.recheck import recheck
from ragaudit.verifier.service import retention, windows
from service_audit import decide, failed
from service_rows_window import ServiceRowsWindow
from verifier_service_harness import VerifierScenario, problem_of


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[VerifierScenario]:
    clock = Clock(1000 * (COUNTERSIGNED - 60))
    with VerifierScenario(tmp_path, None, clock).running() as running:
        yield running


@pytest.fixture
def window(scenario: VerifierScenario) -> ServiceRowsWindow:
    window = ServiceRowsWindow(scenario)
    window.until_challenge()
    return window


def state(window: ServiceRowsWindow) -> Any:
    return window.scenario.client.get(window.target("")).json()["state"]


def stored(window: ServiceRowsWindow) -> set[str]:
    origin = windows.of(window.provider, window.window)
    with window.scenario.service.database.read() as connection:
        return {item.name for item in windows.list_items(connection, origin, "confidential/rows")}


def test_the_audit_waits_for_the_rows_of_every_tenant(
    scenario: VerifierScenario, window: ServiceRowsWindow, tmp_path: Path
) -> None:
    strata = [stratum.id for stratum in window.challenged.strata]
    assert strata[-2:] == ["rows:acme", "rows:beta"]
    assert all(s.population is None for s in window.challenged.strata[-2:])
    window.respond()
    for tenant in ("acme", "beta"):
        scenario.service.scheduler.tick()
        assert state(window) == "challenged"
        # The same again changes nothing.
        assert [window.put(tenant, window.opening_of(tenant)).status_code for _ in "12"] == [
            204, 204,
        ]  # fmt: skip
    verdict = decide(scenario, window)
    assert (verdict.result, failed(verdict)) == ("PASS", [])
    claims = verdict.predicate.claims
    # The service has no embedder of these texts.
    assert claims is not None and "rows" in claims.open
    rows = verdict.predicate.sampling["rows"]
    assert [s["population"] for s in rows["strata"]] == [21, 20]  # acme has a version 2
    assert not any(s["id"].startswith("rows:") for s in verdict.predicate.sampling["strata"])
    report = scenario.client.get(window.target("/report.txt")).text
    assert "rows:acme" in report and "bad rows of 21" in report
    assert all(f"document {n} of acme" not in report for n in range(20))
    token = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    whole = scenario.client.post(
        window.target("/bundle/confidential"),
        headers={"Authorization": f"Bearer {token}"},
        json={"reader": "A. Ito", "reason": "the whole is judged again"},
    ).content
    public = scenario.client.get(window.target("/bundle")).content
    assert {rows_name("acme"), rows_name("beta")} <= set(read_archive(io.BytesIO(whole)).digests)
    assert not any("rows/" in name for name in read_archive(io.BytesIO(public)).digests)
    for number, content in enumerate((whole, public)):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(content)
        found = recheck(path, engine=engine("core"), verdict_key=scenario.keys.verdict.public)
        assert found.differences == ()
        assert found.complete == (content == whole)
        not_repeated = any(text.startswith("check 32 rows:") for text in found.not_repeated)
        assert not_repeated == (content == public)


def test_a_second_answer_is_refused(window: ServiceRowsWindow) -> None:
    assert window.put("acme", window.opening_of("acme")).status_code == 204
    problem_of(window.put("acme", window.opening_of("beta")), 409, "conflict")


def test_only_sampled_tenants_are_taken(window: ServiceRowsWindow) -> None:
    problem_of(window.put("gamma", b"rows"), 404, "not-found")
    assert stored(window) == set()


def test_before_the_challenge_nothing_is_taken(scenario: VerifierScenario) -> None:
    window = ServiceRowsWindow(scenario)
    window.play()
    problem_of(window.put("acme", b"rows"), 409, "conflict")
    assert stored(window) == set()


def test_after_the_deadline_nothing_is_taken_but_the_same_again(
    scenario: VerifierScenario, window: ServiceRowsWindow
) -> None:
    """Rows that are shown late could be looked for until they fit: there is no late answer."""
    acme, beta = (window.opening_of(tenant) for tenant in ("acme", "beta"))
    assert window.put("acme", acme).status_code == 204
    scenario.clock.at(INSTANTS[-1] + DEADLINE_SECONDS + 10)
    assert window.put("acme", acme).status_code == 204
    assert "deadline" in problem_of(window.put("beta", beta), 409, "conflict")["detail"]
    assert stored(window) == {rows_name("acme")}
    window.respond()
    verdict = decide(scenario, window)
    assert "rows" in failed(verdict)


def test_no_more_is_read_than_the_sample_can_have(
    window: ServiceRowsWindow,
) -> None:
    counts = [len(sample) for sample in window.challenged.sampled_rows.values()]
    most = longest_rows(max(counts), window.dimension)
    problem_of(window.put("acme", bytes(most + 1)), 413, "too-large")
    assert stored(window) == set()
    # What is in it nobody reads before the audit.
    assert window.put("acme", bytes(most)).status_code == 204


def test_a_stranger_leaves_nothing_behind(
    scenario: VerifierScenario, window: ServiceRowsWindow
) -> None:
    target = f"/v1/windows/{window.window}/challenge/rows/acme"
    answer = scenario.client.put(target, content=window.opening_of("acme"))
    assert answer.status_code == 401
    assert stored(window) == set()


def test_a_window_without_sampled_rows_takes_none(scenario: VerifierScenario) -> None:
    class Unsampled(ServiceRowsWindow):
        def policy_json(self) -> dict[str, Any]:
            return {**super().policy_json(), "owners": {"rows": None}}

        def draw_sample(self, receipts: Any) -> Any:
            return []

    window = Unsampled(scenario)
    window.until_challenge()
    assert window.challenged.sampled_rows == {}
    problem_of(window.put("acme", b"rows"), 404, "not-found")


def test_what_was_opened_is_deleted_with_the_confidential_part(
    scenario: VerifierScenario, window: ServiceRowsWindow
) -> None:
    window.respond()
    for tenant in ("acme", "beta"):
        window.put(tenant, window.opening_of(tenant))
    assert decide(scenario, window).result == "PASS"
    assert stored(window) == {rows_name("acme"), rows_name("beta")}
    origin = windows.of(window.provider, window.window)
    with scenario.service.database.write() as transaction:
        statement = retention.delete(transaction, scenario.keys, origin)
    assert {rows_name("acme"), rows_name("beta")} <= set(statement.items)
    assert stored(window) == set()


def test_an_index_that_the_log_only_claims_is_not_drawn_from(scenario: VerifierScenario) -> None:
    """A version entry of 2^39 rows costs its provider nothing, and must cost V nothing."""

    class Claims(ServiceRowsWindow):
        uploads = False

        def announce(self, entry: Any) -> None:
            super().announce(replace(entry, rows=2**39))

        def log_documents(self) -> None:
            """No list of these could be made."""

    window = Claims(scenario)
    window.until_challenge()
    assert "acme" not in window.challenged.sampled_rows
    assert "beta" in window.challenged.sampled_rows
