"""Windows without noise through the service: later versions handed over, claims in the verdict."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.lab.scenario.integrity import Row
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import COUNTERSIGNED, START
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.entries import Version
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.statement_checks import judge
from ragaudit.verifier.recheck import recheck
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.disputes import _view
from resigning import resigned
from service_audit import decide, failed
from service_integrity_window import ServiceIntegrityWindow
from verifier_service_harness import VerifierScenario


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[VerifierScenario]:
    clock = Clock(1000 * (COUNTERSIGNED - 60))
    with VerifierScenario(tmp_path, None, clock).running() as running:
        yield running


def test_an_honest_window_passes_and_claims_no_privacy(scenario: Any, tmp_path: Path) -> None:
    window = ServiceIntegrityWindow(scenario)
    window.play()
    window.finish()
    verdict = decide(scenario, window)
    assert (verdict.result, failed(verdict)) == ("PASS", [])
    claims = verdict.predicate.claims
    assert claims is not None
    assert (claims.integrity, claims.privacy) == ("PASS", "NOT CLAIMED")
    assert verdict.predicate.counts["versions"] == 1
    assert verdict.predicate.counts["null_rows"] == 1
    base = f"/v1/windows/{window.window}"
    shown = scenario.client.get(base).json()
    assert shown["claims"] == {"integrity": "PASS", "privacy": "NOT CLAIMED"}
    report = scenario.client.get(f"{base}/report.txt").text
    assert report.startswith("No epsilon is claimed")
    token = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    whole = scenario.client.post(
        f"{base}/bundle/confidential",
        headers={"Authorization": f"Bearer {token}"},
        json={"reader": "A. Ito", "reason": "the whole is judged again"},
    )
    evidence = read_archive(io.BytesIO(whole.content)).evidence
    assert "public/index/acme/2.bin" in evidence
    for content, complete in (
        (whole.content, True),
        (scenario.client.get(f"{base}/bundle").content, False),
    ):
        path = tmp_path / "bundle.zip"
        path.write_bytes(content)
        again = recheck(path, engine=engine("core"), pins=window.pins)
        again.raise_for_differences()
        assert again.complete == complete
        assert any("privacy NOT CLAIMED" in line for line in again.lines())


@pytest.mark.parametrize("announces", [True, False])
def test_disputed_answers_of_every_kind_are_judged(scenario: Any, announces: bool) -> None:
    """Of both versions, whenever the provider gave the second one's entry; also by the service."""
    window = ServiceIntegrityWindow(scenario)
    window.announces = announces
    window.play()
    window.submit()
    window.hand_over()
    with scenario.service.database.read() as connection:
        view = _view(
            connection, windows.get(connection, windows.of(window.provider, window.window))
        )
    assert [version.version for _, version in view.versions] == [2]
    assert {asked.record.version for asked in window.asked} == {1, 2}
    for asked in window.asked:
        file = window.receipt_file(asked)
        assert judge(file.to_json(), view, engine("core")).step == 0
        value = file.to_json()
        value["answer"]["documents"][0]["content"] = "something else"
        assert judge(resigned(window, value), view, engine("core")).step == 7


def test_a_version_that_was_never_handed_over_fails(scenario: Any) -> None:
    window = ServiceIntegrityWindow(scenario)
    window.uploads = False
    window.play()
    window.finish()
    verdict = decide(scenario, window)
    assert (verdict.result, failed(verdict)) == ("FAIL", ["commitments"])


class Opened(ServiceIntegrityWindow):
    """A window up to its first later version, which it does not log."""

    def announce(self, entry: Version) -> None:
        self.entry = entry

    def reach(self) -> None:
        self.open()
        for name, *rest in self.script()[:4]:
            getattr(self, name)(*rest)
        self.scenario.clock.at(START + 30)
        self.version("acme", 30)

    def put(self, content: bytes, tenant: str = "acme", version: int = 2) -> Any:
        target = f"/v1/windows/{self.window}/tenants/{tenant}/versions/{version}"
        return self.signed("PUT", target, content)


def test_a_version_is_taken_once(scenario: Any) -> None:
    window = Opened(scenario)
    window.reach()
    content = window.version_bytes(window.entry)
    assert window.put(content).status_code == 204
    assert window.put(content).status_code == 204
    other = window.build_version("acme", 2).commitment.encode()
    assert window.put(other).status_code == 409


def test_a_version_that_the_log_lacks_is_no_evidence(scenario: Any) -> None:
    window = Opened(scenario)
    window.reach()
    assert window.put(window.version_bytes(window.entry)).status_code == 204
    window.checkpoint(81)
    window.close()
    window.finish()
    verdict = decide(scenario, window)
    assert (verdict.result, failed(verdict)) == ("PASS", [])
    assert "public/index/acme/2.bin" not in verdict.subjects


def test_what_is_no_version_of_this_index_is_refused(scenario: Any) -> None:
    window = Opened(scenario)
    window.reach()
    index = window.later["acme", 2].commitment
    assert window.put(b"nothing").status_code == 400
    for other in (
        replace(index, tenant="beta"),
        replace(index, version=3),
        replace(index, window="w9"),
        replace(index, proof=window.indices["acme"].commitment.proof),
        replace(index, commitments=index.commitments[32:] + index.commitments[:32]),
    ):
        answer = window.put(other.encode())
        assert answer.status_code == 422, answer.text
    # A whole version with its argument, of another tenant: it would be true of that one.
    window.delete("beta", 6)
    foreign = window.build_version("beta", 2).commitment
    assert window.put(foreign.encode(), tenant="beta").status_code == 204
    assert window.put(foreign.encode()).status_code == 422
    undeclared = replace(index, columns=('{"colour":"red"}',) * index.rows)
    assert window.put(undeclared.encode()).status_code == 400
    content = index.encode()
    assert window.put(content, tenant="nobody").status_code == 404
    assert window.put(content, version=0).status_code in {400, 422}
    assert window.put(content, version=1002).status_code in {400, 422}
    assert window.put(content, version=1).status_code == 409
    assert window.put(content).status_code == 204


class WithoutColumns(Opened):
    """A window whose policy declares no columns; a row of acme is deleted before version 2."""

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        return [replace(row, columns={}) for row in rows]

    def script(self) -> list[Event]:
        return [event for event in super().script() if event[0] in {"register", "checkpoint"}]


def test_null_rows_are_marked_also_where_no_columns_are_declared(scenario: Any) -> None:
    window = WithoutColumns(scenario, overrides={"public_columns": []})
    window.delete("acme", 6)
    window.reach()
    index = window.later["acme", 2].commitment
    assert set(index.columns) == {"{}", "null"}
    assert window.put(index.encode()).status_code == 204


def test_no_version_after_the_handover(scenario: Any) -> None:
    window = Opened(scenario)
    window.reach()
    window.checkpoint(81)
    window.close()
    window.hand_over()
    assert window.put(window.version_bytes(window.entry)).status_code == 409


def test_no_version_where_the_policy_has_none(scenario: Any) -> None:
    window = Opened(scenario, overrides={"versions": False})
    window.reach()
    answer = window.put(window.version_bytes(window.entry))
    assert answer.status_code == 409
    assert "no later versions" in answer.text


def test_later_versions_are_bounded(scenario: Any) -> None:
    window = Opened(scenario)
    window.reach()
    content = window.version_bytes(window.entry)
    limits = scenario.service.later_versions._limits
    scenario.service.later_versions._limits = limits.model_copy(
        update={"version_bytes": len(content)}
    )
    assert window.put(content).status_code == 204
    assert window.put(content, version=3).status_code in {413, 429, 507}
