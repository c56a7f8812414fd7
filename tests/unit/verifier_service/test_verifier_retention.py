"""Confidential evidence that is kept no longer: deleted whole, and said so in the same breath."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import COUNTERSIGNED, HANDED_OVER
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.custody import Deletion
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive, write_bundle
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.later_statements import Judged
from ragaudit.verifier.recheck import recheck
from ragaudit.verifier.service import tables
from ragaudit.verifier.service.retention import DAY_MS
from service_audit import decide
from service_window import ServiceWindow
from sqlalchemy import select
from typer.testing import CliRunner, Result
from verifier_service_harness import VerifierScenario, problem_of

DAYS = 30
SAID = {"reader": "A. Ito", "reason": "complaint 17"}


class Kept:
    """A judged window of a verifier that keeps confidential evidence for thirty days."""

    def __init__(self, scenario: VerifierScenario, *, close: bool = True) -> None:
        self.scenario = scenario
        self.window = ServiceWindow(scenario)
        self.window.play()
        self.window.submit()
        if close:
            self.window.hand_over()
        self.window.reach_sampling()
        if close:
            self.window.respond()
        self.verdict: Verdict = decide(scenario, self.window)
        self.decided: int = self.get("").json()["times"]["decided"]

    def headers(self) -> dict[str, str]:
        token = keys.read_token(self.scenario.settings.secrets / keys.TOKEN)
        return {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        return self.scenario.client.get(f"/v1/windows/{self.window.window}{path}")

    def post(self, path: str) -> Any:
        target = f"/v1/windows/{self.window.window}{path}"
        return self.scenario.client.post(target, headers=self.headers(), json=SAID)

    def tick_at(self, time: int) -> None:
        self.scenario.clock.now = time
        self.scenario.service.scheduler.tick()

    def expire(self) -> None:
        self.tick_at(self.decided + DAYS * DAY_MS)

    def statement(self) -> Deletion:
        return Deletion.from_json(canonical_json.loads(self.get("/deletion").content))

    def check(self, statement: Deletion, checkpoint: TreeHead | None) -> None:
        key, origin = self.scenario.keys.statement.public, self.window.origin
        statement.authenticate(key, self.verdict, origin=origin, checkpoint=checkpoint)

    def rows(self) -> dict[str, int]:
        """How many rows there are of what is confidential."""
        named = "confidential/%"
        chunk, submission = tables.chunk.c, tables.submission.c
        queries = {
            "items": select(tables.item.c.name).where(tables.item.c.name.like(named)),
            "chunks": select(chunk.name).where(chunk.name.like(named)),
            "claims": select(submission.kind).where(submission.kind == "claim"),
            "disputes": select(tables.dispute.c.position),
        }
        with self.scenario.service.database.read() as connection:
            return {name: len(connection.execute(q).all()) for name, q in queries.items()}


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[VerifierScenario]:
    use_cached_table()
    made = VerifierScenario(tmp_path, None, Clock(1000 * (COUNTERSIGNED - 60)))
    settings = made.settings.model_copy(update={"retention_days": DAYS})
    with made.running(settings) as running:
        yield running


def test_confidential_evidence_goes_when_it_is_due_and_not_before(
    scenario: VerifierScenario, tmp_path: Path
) -> None:
    kept = Kept(scenario)
    assert kept.verdict.result == "PASS"
    kept.tick_at(kept.decided + DAYS * DAY_MS - 3_600_001)
    problem_of(kept.get("/deletion"), 404, "not-found")
    assert kept.post("/bundle/confidential").status_code == 200
    assert kept.rows()["chunks"] > 0
    public = kept.get("/bundle").content

    kept.expire()
    assert set(kept.rows().values()) == {0}
    statement = kept.statement()
    kept.check(statement, kept.window.tree.head())
    assert statement.time == kept.get("").json()["times"]["deleted"]

    # Verdict, public evidence and accesses stay.
    assert kept.get("/bundle").content == public
    assert read_archive(io.BytesIO(public)).evidence
    path = tmp_path / "bundle.zip"
    path.write_bytes(public)
    recheck(path, engine=engine("core"), pins=kept.window.pins).raise_for_differences()
    assert kept.get("/report.txt").status_code == 200
    assert kept.get("").json()["counts"]["accesses"] == 1


def test_whoever_has_the_public_bundle_checks_what_was_deleted(
    scenario: VerifierScenario, tmp_path: Path
) -> None:
    kept = Kept(scenario)
    kept.expire()
    statement, bundle = tmp_path / "deletion.json", tmp_path / "bundle.zip"
    statement.write_bytes(kept.get("/deletion").content)
    bundle.write_bytes(kept.get("/bundle").content)

    def run(*options: str, key: PrivateKey = scenario.keys.verdict) -> Result:
        words = [str(statement), str(bundle), "--verdict-key", key.public.raw.hex(), *options]
        return CliRunner().invoke(app, ["evidence", "verify-deletion", *words])

    done = run()
    assert done.exit_code == 0, done.output
    head, count = kept.window.tree.head(), len(kept.statement().items)
    assert f"all {count} confidential items" in done.output
    assert f"under checkpoint {head.size} {head.root_hash.hex()}" in done.output
    assert canonical_json.loads_any(run("--json").output.encode()) == kept.statement().to_json()

    assert run(key=PrivateKey.generate()).exit_code == 1
    changed = {**kept.statement().to_json(), "time": 1}
    statement.write_bytes(canonical_json.dumps(changed))
    assert run().exit_code == 1
    statement.write_text("[]")
    assert run().exit_code == 2


def test_a_bundle_of_other_items_than_its_verdict_names_is_rejected(
    scenario: VerifierScenario, tmp_path: Path
) -> None:
    kept = Kept(scenario)
    found = read_archive(io.BytesIO(kept.get("/bundle").content))
    items = {**found.evidence, POLICY: found.evidence[POLICY].replace(b"w1", b"w2")}
    write_bundle(tmp_path / "other", Evidence.of(items), found.verdict, part="public")
    with pytest.raises(RejectedError, match="not the item that the verdict names"):
        Judged.read(tmp_path / "other", scenario.keys.verdict.public)


def test_what_asks_for_it_afterwards_is_told(scenario: VerifierScenario) -> None:
    kept = Kept(scenario)
    kept.expire()
    for path in ("/bundle/confidential", f"/accounts/{kept.window.logged()[0].pseudonym.hex()}"):
        problem_of(kept.post(path), 404, "not-found")
    shown = kept.get("").json()
    assert (shown["state"], shown["result"]) == ("decided", "PASS")
    gone = ("claims", "disputes", "responses", "sampled")
    assert {name: shown["counts"][name] for name in gone} == dict.fromkeys(gone)
    assert shown["counts"]["accesses"] == 0
    asked = kept.window.signed("GET", f"/v1/windows/{kept.window.window}/challenge")
    problem_of(asked, 404, "not-found")
    problem_of(kept.get("/disputes/5"), 404, "not-found")


def test_it_is_deleted_and_stated_once(scenario: VerifierScenario) -> None:
    kept = Kept(scenario)
    kept.expire()
    first = kept.get("/deletion").content
    kept.tick_at(kept.decided + 2 * DAYS * DAY_MS)
    assert kept.get("/deletion").content == first


def test_of_a_window_that_was_never_closed_there_is_no_checkpoint(
    scenario: VerifierScenario,
) -> None:
    kept = Kept(scenario, close=False)
    assert kept.verdict.result == "FAIL"
    kept.expire()
    kept.check(kept.statement(), None)


def test_parts_of_a_handover_that_never_ended_go_when_the_audit_begins(
    scenario: VerifierScenario,
) -> None:
    window = ServiceWindow(scenario)
    window.play()
    scenario.clock.at(HANDED_OVER)
    window.send("PUT", "/records/parts/0", window.handover())
    assert _parts(scenario) == 1
    window.reach_sampling()
    assert decide(scenario, window).result == "FAIL"
    assert _parts(scenario) == 0


def _parts(scenario: VerifierScenario) -> int:
    name = tables.item.c.name
    with scenario.service.database.read() as connection:
        return len(connection.execute(select(name).where(name.like("handover/%"))).all())
