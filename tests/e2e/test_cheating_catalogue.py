"""The catalogue is complete, its words are right, and its commands run it."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from cheating import UNCLAIMED, assert_caught, assert_complaints, assert_passes_without, shown
from cheating_behaviours import BEHAVIOURS
from for_each import for_each
from procedure_cases import use_cached_table
from ragaudit.client.checks import Checker
from ragaudit.client.verifier import VerifierService
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks import (
    CATALOGUE,
    Cheat,
    ConstructedCheat,
    Intrusion,
    ServiceCheat,
    find,
    intrude,
    run,
    stage,
)
from ragaudit.lab.attacks.cheat import BEFORE_THE_WINDOW, FAMILIES
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.attacks.serve import main, service_cheat
from ragaudit.lab.scenario.scenario import (
    CHANGED,
    ChangingScenario,
    Conclusion,
    ExactScenario,
    Prepared,
    Scenario,
)
from ragaudit.lab.scenario.services import PRIVATE
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.answering.query import Described, Selected, Stage, Stages
from ragaudit.prover.service import Components
from ragaudit.prover.window.records import SelectedRow
from ragaudit.verifier.procedure import CHECKS, Status, covered
from ragaudit.verifier.service import submissions
from typer import Typer
from typer.testing import CliRunner

runner = CliRunner()


def test_every_behaviour_has_its_entry_and_every_entry_its_behaviour() -> None:
    assert tuple(BEHAVIOURS) == FAMILIES
    listed = {(family, name) for family, names in BEHAVIOURS.items() for name in names.values()}
    assert listed == {(each.family, each.name) for each in CATALOGUE}
    assert len({each.name for each in CATALOGUE}) == len(CATALOGUE)


@for_each("cheat", CATALOGUE)
def test_an_entry_says_what_there_is_to_say(cheat: Cheat) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cheat.name)
    assert cheat.description.endswith(".")
    assert cheat.reason
    order = [check.id for check in CHECKS]
    assert list(cheat.checks) == sorted(cheat.checks, key=order.index)
    assert bool(cheat.checks) != isinstance(cheat, Intrusion)
    if cheat.refused:
        assert set(cheat.checks) <= BEFORE_THE_WINDOW
    if isinstance(cheat, ServiceCheat):
        assert cheat.staging == "service"
        honest = Components()
        changed = cheat.components(honest)
        for name, part in cheat.parts.items():
            assert getattr(changed, name) is part
            assert _is_part(part, getattr(honest, name))
    elif isinstance(cheat, Intrusion):
        assert cheat.staging == "intrusion"
        assert all(callable(getattr(guard.owner, guard.name)) for guard in cheat.guards)
    else:
        assert isinstance(cheat, ConstructedCheat)
        assert cheat.staging == "constructed"
        assert cheat.why


def _is_part(part: Any, honest: Any) -> bool:
    """Whether it fits in the place of the honest part: of stages, one and no other is replaced."""
    if not isinstance(part, Stages):
        return issubclass(part, honest)
    classes = [(getattr(part, each.name), getattr(honest, each.name)) for each in fields(part)]
    replaced = [(stage, of) for stage, of in classes if stage is not of]
    return len(replaced) == 1 and all(issubclass(stage, of) for stage, of in replaced)


def test_a_service_cheat_overrides_little() -> None:
    """One component each, but for broken promises: it takes two to forget one."""
    several = [c.name for c in CATALOGUE if isinstance(c, ServiceCheat) and len(c.parts) != 1]
    assert sorted(several) == [
        "a-reply-that-never-ends",
        "an-old-answer-after-a-reveal",
        "claims-crowded-out",
        "garbage-after-a-reveal",
        "intake-flooded",
        "promise-not-kept",
    ]


def test_every_check_but_two_catches_a_cheat_of_the_catalogue() -> None:
    """Refusals and epsilon have no cheat in the list; the procedure's own tests have."""
    caught = {name for each in CATALOGUE for name in each.checks}
    assert {check.id for check in CHECKS} - caught == {"log", "refusals", "epsilon"}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no cheat 'x'"):
        find("x")
    with pytest.raises(UnsupportedError, match="no service stages this cheat"):
        service_cheat("counter-repeat")
    with pytest.raises(UnsupportedError, match="staging intrusion"):
        run("handover-flooded")
    assert service_cheat("half-the-sigma").family == "SELECTION"


def test_run_stages_a_cheat_of_either_kind() -> None:
    use_cached_table()
    assert run("counter-repeat").failed == ("counters",)
    assert run("sigma-too-small-for-the-claim").result == "REFUSED"


def test_the_command_lists() -> None:
    plain = runner.invoke(app, ["list"])
    assert plain.exit_code == 0
    lines = plain.stdout.splitlines()
    assert len(lines) == len(CATALOGUE)
    assert lines[0].split() == [
        "SEED", "equal-keys-for-all-slots", "service", "FAIL", "by", "seed",
    ]  # fmt: skip
    listed = json.loads(runner.invoke(app, ["list", "--json"]).stdout)
    assert [each["name"] for each in listed] == [each.name for each in CATALOGUE]
    assert {each["staging"] for each in listed} == {"service", "constructed", "intrusion"}
    assert lines[-1].split()[-4:] == ["REPELLED", "by", "the", "service"]


def test_the_command_runs() -> None:
    use_cached_table()
    done = runner.invoke(app, ["run", "tie-kept"])
    assert done.exit_code == 0
    assert done.stdout.rstrip().endswith("FAIL")
    value = json.loads(runner.invoke(app, ["run", "counter-repeat", "--json"]).stdout)
    assert value["result"] == "FAIL"
    assert value["caught"] is True
    assert [c["id"] for c in value["checks"] if c["status"] == "FAIL"] == ["counters"]
    plain = runner.invoke(app, ["run", "noise-stored-as-an-index"])
    assert plain.exit_code == 0
    assert plain.stdout.rstrip().endswith("REPELLED")
    value = json.loads(runner.invoke(app, ["run", "windows-without-end", "--json"]).stdout)
    assert (value["result"], value["caught"]) == ("REPELLED", True)
    assert value["cheat"]["reason"] in value["said"]
    unknown = runner.invoke(app, ["run", "x"])
    assert unknown.exit_code == 2
    assert "no cheat 'x'" in unknown.stderr


def test_the_cheating_service_lists_and_refuses() -> None:
    serve = Typer()
    serve.command()(main)
    assert "half-the-sigma" in runner.invoke(serve, ["list"]).stdout
    for name, why in (("counter-repeat", "no service stages this cheat"), ("x", "no cheat 'x'")):
        refused = runner.invoke(serve, [name])
        assert refused.exit_code == 2
        assert why in refused.stderr
    missing = runner.invoke(serve, ["half-the-sigma", "--config", "/nonexistent/prover.yaml"])
    assert missing.exit_code == 2
    assert "cannot read" in missing.stderr


def test_the_command_group_is_an_entry_point() -> None:
    found = {each.name: each.value for each in entry_points(group="ragaudit.commands")}
    assert found["attack"] == "ragaudit.lab.attacks.cli:app"


# What a pinned provider does to the verifier's service: repelled for the named reason.

INTRUSIONS = [each for each in CATALOGUE if isinstance(each, Intrusion)]


@pytest.mark.parametrize("cheat", INTRUSIONS, ids=lambda cheat: cheat.name)
def test_an_intrusion(cheat: Intrusion, tmp_path: Path, prepared: Prepared) -> None:
    """It is repelled, and without its guard gets through."""
    repelled = intrude(cheat, tmp_path / "guarded", prepared=prepared)
    assert cheat.repelled(repelled), repelled
    there = [getattr(guard.owner, guard.name) for guard in cheat.guards]
    through = intrude(cheat, tmp_path / "unguarded", prepared=prepared, guarded=False)
    assert through.through, through
    assert [getattr(guard.owner, guard.name) for guard in cheat.guards] == there


# Every cheat that a prover service can stage, against the real verifier and the real client.

SERVICE = [each for each in CATALOGUE if isinstance(each, ServiceCheat)]

QUICK = ("row-of-norm-128", "sigma-too-small-for-the-claim")
LET_IN = [
    pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.slow])
    for each in SERVICE
    if each.refused and not each.guard
]


def test_an_honest_provider_passes(tmp_path: Path, prepared: Prepared) -> None:
    played = Scenario(tmp_path, Components(), prepared=prepared, disputes=True).run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS"
    assert [c.id for c in played.outcome.checks if c.status != Status.PASS] == []
    assert played.outcome.counts["records"] == 8
    assert played.outcome.counts["receipts"] == 8
    assert played.outcome.coalition == {"claimed": 2, "estimated": 2, "max": 2}


def test_an_honest_provider_passes_without_noise(tmp_path: Path, prepared_exact: Prepared) -> None:
    """Texts, a filter, a vector and tied rows; every account checks its receipts."""
    played = ExactScenario(tmp_path, Components(), prepared=prepared_exact, disputes=True).run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS", shown(played.outcome)
    left = {c.id: c.status for c in played.outcome.checks if c.status != Status.PASS}
    assert left == dict.fromkeys(UNCLAIMED, Status.NOT_APPLICABLE)
    assert played.outcome.counts["records"] == played.outcome.counts["receipts"] == 8


@pytest.mark.parametrize("cheat", SERVICE, ids=lambda cheat: cheat.name)
def test_a_cheating_service(
    cheat: ServiceCheat, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = "prepared" if cheat.scenario.offer is PRIVATE else "prepared_exact"
    staged = stage(cheat, tmp_path / "window", prepared=request.getfixturevalue(kind))
    assert_caught(cheat, staged)
    assert_complaints(cheat, staged)
    assert_passes_without(cheat, staged)


def test_claims_are_crowded_out_without_the_rule(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promise is broken with PASS if the last query's claim displaces no earlier ones."""
    monkeypatch.setattr(submissions, "make_room", lambda *_: None)
    staged = stage(find("claims-crowded-out"), tmp_path / "window", prepared=prepared)
    assert staged.outcome.result == "PASS", shown(staged.outcome)
    assert any("too many claims" in line for line in staged.complaints)


def test_receipts_are_crowded_out_without_the_rule(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is lost with PASS if what bob signs for takes no room of what he did not."""
    monkeypatch.setattr(submissions, "hold", lambda *_: None)
    staged = stage(find("receipts-crowded-out"), tmp_path / "window", prepared=prepared)
    assert staged.outcome.result == "PASS", shown(staged.outcome)
    assert any("too many receipts" in line for line in staged.complaints)


def test_receipts_are_crowded_out_without_the_account_s_signature(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same if bob signs for nothing."""
    submit = VerifierService._submit
    monkeypatch.setattr(VerifierService, "_submit", lambda *given: submit(*given[:-1]))
    staged = stage(find("receipts-crowded-out"), tmp_path / "window", prepared=prepared)
    assert staged.outcome.result == "PASS", shown(staged.outcome)


@pytest.mark.parametrize("cheat", LET_IN)
def test_a_refused_window_that_is_let_in_passes(cheat: ServiceCheat, tmp_path: Path) -> None:
    """A verifier without the check countersigns, audits the whole window, and finds nothing."""
    use_cached_table()
    staged = stage(cheat, tmp_path, without=cheat.checks)
    assert staged.outcome.result == "PASS", (shown(staged.outcome), staged.complaints)
    assert {each.id for each in staged.outcome.checks}.isdisjoint(cheat.checks)


# Documents that change within a window without noise, with all services.


def files(scenario: ChangingScenario, account: str) -> list[ReceiptFile]:
    return [receipt.file for receipt in scenario.accounts[account].receipts]


def test_changes_are_withdrawn_and_then_taken_up(tmp_path: Path, prepared_exact: Prepared) -> None:
    scenario = ChangingScenario(tmp_path, Components(), prepared=prepared_exact, disputes=True)
    played = scenario.run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS", shown(played.outcome)
    left = {c.id: c.status for c in played.outcome.checks if c.status != Status.PASS}
    assert left == dict.fromkeys(UNCLAIMED, Status.NOT_APPLICABLE)
    assert (played.outcome.counts["versions"], played.outcome.counts["null_rows"]) == (1, 1)
    *_, between, after = files(scenario, "bob")
    assert "acme-7" in {row.id for row in between.private.withdrawn}
    assert len(between.answer.documents) < 3
    # From the version's instant on, K documents come back, and the new text is found.
    assert not after.private.withdrawn and len(after.answer.documents) == 3
    assert after.answer.documents[0].content == CHANGED
    assert "acme-5" not in {document.id for document in after.answer.documents}


class WithholdsTheBest(Selected):
    """The nearest document is called withdrawn, although nobody changed it."""

    def documents(self) -> list[SelectedRow]:
        return super().documents()[1:]


def test_what_is_called_withdrawn_is_the_providers_word(
    tmp_path: Path, prepared_exact: Prepared
) -> None:
    """No check knows the store; the account holds it signed, and the version says it stands."""
    parts = Components(stages=Stages(selected=WithholdsTheBest))
    scenario = ChangingScenario(tmp_path, parts, prepared=prepared_exact, disputes=True)
    played = scenario.run()
    assert played.outcome.result == "PASS", shown(played.outcome)
    assert played.complaints == ()
    assert covered.WITHHELD in played.outcome.not_covered
    # With words: everybody reads how many rows the accounts did not get.
    stated = played.outcome.withheld
    records = played.outcome.counts["records"]
    assert stated is not None and stated["answers"] == records <= stated["rows"]
    by_account = {each["pseudonym"]: each["rows"] for each in stated["most"]}
    for name in scenario.accounts:
        for file in files(scenario, name):
            named = [row.id for row in file.private.withdrawn]
            assert named, "each answer says what it leaves out"
            assert len(named) + len(file.answer.documents) == file.request.top_k
            assert file.public.query.withheld == len(named)
            by_account[file.public.query.pseudonym.hex()] -= len(named)
    assert set(by_account.values()) == {0}


# What the client library finds before any harm is done: staged against the running services.
#
# These cheats need no audit: nothing is revealed, or the answer is refused, and the window passes.
# Each test also plays the cheat with the client's own check removed, and then nobody complains.

BACK_MILLISECONDS = 4000  # more than the skew of the scenario's policy


class Dates(Stage):
    """Dates records as it likes."""

    def stamp(self, current: Any, record: Record) -> Record:
        record = super().stamp(current, record)
        earliest = max(current.last_time, 1000 * self.window.policy.start)
        return replace(record, time=max(record.time - BACK_MILLISECONDS, earliest))


class DatesPromises(Dates, Described):
    """A promise that is older than it is expires when the provider likes."""


class DatesAnswers(Dates, Selected):
    """Queries of a coalition that are pulled apart in time look unlinked."""


def play(folder: Path, prepared: Prepared, stages: Stages) -> Conclusion:
    return Scenario(folder, Components(stages=stages), prepared=prepared).run()


def test_a_promise_dated_back_is_not_revealed(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(tmp_path / "checked", prepared, Stages(described=DatesPromises))
    complaints = [each for each in played.complaints if each.startswith("alice")]
    assert any("promise, time: made at" in each for each in complaints)
    assert played.outcome.result == "PASS"
    assert played.outcome.counts["records"] == 6  # alice revealed nothing after her first
    monkeypatch.setattr(Checker, "promise", without_times(Checker.promise))
    assert play(tmp_path / "unchecked", prepared, Stages(described=DatesPromises)).complaints == ()


def test_a_plain_answer_dated_back_is_refused(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(tmp_path / "checked", prepared, Stages(selected=DatesAnswers))
    assert any("answer, time: made at" in each for each in played.complaints)
    assert not any(each.startswith("alice") for each in played.complaints)
    monkeypatch.setattr(Checker, "plain_time", lambda *_: None)
    assert play(tmp_path / "unchecked", prepared, Stages(selected=DatesAnswers)).complaints == ()


def without_times(check: Any) -> Any:
    """The check of a promise as if it had been asked for long ago, by somebody who forgot."""
    return lambda self, value, request, asked, *, first: check(
        self, value, request, asked - 10**6, first=False
    )
