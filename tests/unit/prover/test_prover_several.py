"""Two provers on one PostgreSQL: each answers, with what the other did, and nothing twice."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import postgresql_server
import pytest
from exact_windows import ask, change, later, start
from finished_windows import Finished
from ragaudit.encoding.errors import UnavailableError
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.messages.custody import ProviderDeletion
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.background import Background
from ragaudit.prover.errors import ClocksDiffer, NotLeading, QueryRefused
from ragaudit.prover.lifecycle.asking import receipt_id
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import count_records
from ragaudit.prover.window.registrations import find
from ragaudit.prover.work import JOBS
from ragaudit.serving.jobs.job import Job, JobTable, Outcome
from ragaudit.verifier.later_statements import Judged
from scenario import ProverScenario
from several_provers import at_once, take


@pytest.fixture
def first(
    postgresql: postgresql_server.Server,
    monkeypatch: pytest.MonkeyPatch,
    make_scenario: Callable[..., ProverScenario],
) -> ProverScenario:
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", postgresql.create("prover"))
    made = make_scenario()
    take(made)
    return made


def records(scenario: ProverScenario) -> int:
    with scenario.service.store.read() as connection:
        return count_records(connection, "w1")


def test_one_request_to_both_at_once_is_one_record(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    """With one key, however the processes race: one draw, one charge, one answer."""
    start(first)
    second, ada = join(), first.account("ada")
    for number in range(4):
        request = Request.of(first.policy(), f"bread {number}", 2)
        services = (first.service, second.service)
        calls = [
            partial(each.asking.query, ada, request, idempotency_key=f"k{number}")
            for each in services * 2
        ]
        assert len({file.encode() for file in at_once(calls)}) == 1
        assert records(first) == number + 1


def test_counters_have_no_gap_and_budgets_hold_across_processes(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    start(first, queries_per_account=6)
    second, ada = join(), first.account("ada")

    def query(number: int) -> int:
        scenario = (first, second)[number % 2]
        request = Request.of(first.policy(), f"butter {number}", 2)
        return scenario.service.asking.query(ada, request).public.query.counter

    found = at_once([partial(query, number) for number in range(10)])
    assert sorted(each for each in found if isinstance(each, int)) == list(range(6))
    refused = [each for each in found if isinstance(each, QueryRefused)]
    assert len(refused) == 4 and {each.refusal["reason"] for each in refused} == {"budget"}
    first.service.open_windows.get("w1").log.entries.audit()


def test_accounts_that_register_at_both_get_slots_of_their_own(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    start(first)
    second = join()
    accounts = {name: first.service.accounts.add("one", name) for name in ("eve", "fay")}
    for each in (first, second):
        each.keys.update(accounts)
    at_once([lambda: first.register("eve"), lambda: second.register("fay")])
    with first.service.store.read() as connection:
        rows = [find(connection, "w1", name) for name in ("ada", "cyd", "eve", "fay")]
    assert sorted(row.slot for row in rows if row is not None) == [0, 1, 2, 3]


def test_a_version_that_one_logs_is_in_force_at_the_other(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    """A document that went through one process is withdrawn at once, and gone in the version."""
    start(first, versions=True, length_seconds=300)
    second = join()
    before = ask(second, "bread", 3)
    gone = before.answer.documents[0].id
    change(first, gone, None)
    first.service.refresher.mark_stale("one")
    withdrawn = ask(second, "bread", 4)
    assert withdrawn.public.query.version == 1
    assert gone not in [each.id for each in withdrawn.answer.documents]
    first.clock.at(first.policy().start + 45)
    with pytest.raises(NotLeading):
        second.service.refresher.refresh("w1", "one")
    assert first.service.refresher.step("w1") is True
    later(first, 140)
    after = ask(second, "bread", 2)
    assert after.public.query.version == 2
    assert second.service.asking.receipt(first.account("ada"), receipt_id(before)) == before


def test_an_answer_that_a_version_overtook_is_made_again(
    first: ProverScenario, join: Callable[..., ProverScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version comes into force after the other process has admitted the query."""
    start(first, versions=True, length_seconds=300)
    second = join()
    gone = ask(second, "bread", 3).answer.documents[0].id
    change(first, gone, None)
    first.service.refresher.mark_stale("one")
    first.clock.at(first.policy().start + 45)
    assert first.service.refresher.step("w1") is True
    mechanism = second.service.mechanism
    honest = mechanism.embed
    overtaken: list[str] = []

    def embed(text: str) -> Any:
        if not overtaken:
            overtaken.append(text)
            later(first, 140)
        return honest(text)

    monkeypatch.setattr(mechanism, "embed", embed)
    assert ask(second, "another", 2).public.query.version == 2
    assert overtaken == ["another"] and records(first) == 2


def test_a_window_that_one_ends_answers_nowhere(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    start(first)
    second = join()
    assert ask(second, "bread", 2)
    first.service.stop_window("w1")
    answer = second.ask("ada", "butter")
    assert answer.status_code == 409 and answer.json()["refusal"]["reason"] == "closed"
    first.drive(State.CLOSED)
    live = second.service.open_windows.get("w1")
    with pytest.raises(QueryRefused):
        second.service.asking.query(
            first.account("ada"), Request.of(live.policy, "cheese", 2), window="w1"
        )
    assert records(first) == 1


def test_two_sequencers_at_once_sign_no_fork(
    first: ProverScenario,
    join: Callable[..., ProverScenario],
    postgresql: postgresql_server.Server,
) -> None:
    """The former leader still believes in itself; what it signs is stored and shown nowhere."""
    start(first)
    second = join()
    old = first.service.open_windows.get("w1").log
    new = second.service.open_windows.get("w1").log
    ask(first, "bread", 2)
    with pytest.raises(NotLeading):
        new.sign()
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )
    assert second.service.leadership.attempt()
    stored = old.checkpoints.latest()
    with pytest.raises(NotLeading):
        old.sign()
    with pytest.raises(UnavailableError):
        first.service.driver.step("w1")
    assert old.checkpoints.latest() == stored
    signed = new.sign()
    assert signed.head == old.entries.head() and old.checkpoints.latest() == signed
    # Answers go on in both: they are ordered by the log's row, not by who signs.
    ask(first, "butter", 2)
    ask(second, "cheese", 2)
    old.entries.audit()


def test_who_takes_over_confirms_nothing_before_the_times_of_others(
    first: ProverScenario, join: Callable[..., ProverScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it read when it opened the log is older than what the former leader stamped since."""
    start(first)
    second = join().service
    second.open_windows.get("w1")
    first.clock.now += 60_000
    ask(first, "bread", 2)
    first.service.leadership.resign()
    first.clock.now -= 60_000
    monkeypatch.setattr(Background, "start", lambda _: None)
    second.succession._keep_or_seek()
    with pytest.raises(ClocksDiffer, match="behind a time in the log"):
        second.driver.checkpoint("w1")
    first.clock.now += 60_000
    second.driver.checkpoint("w1")
    assert second.open_windows.get("w1").log.head_is_cosigned()


def test_who_takes_over_keeps_results_of_unfinished_windows_and_nothing_else(
    first: ProverScenario, join: Callable[..., ProverScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that died forgot nothing: jobs of its last window, faults, and what is still due."""
    start(first)
    second = join().service
    table = JobTable(second.store.engine, JOBS.tables)
    due, ended, waiting = (
        Job("k", "w1", "n", b"1"),
        Job("k", "w0", "n", b"2"),
        Job("k", "w0", "n", b""),
    )
    failed = Job("k", "w1", "n", b"3")
    table.add([waiting])
    for job in (due, ended):
        table.store(job, Outcome(b"result", None))
    table.store(failed, Outcome(None, "of another release"))
    begun: list[Background] = []

    def start_nothing(background: Background) -> None:
        begun.append(background)

    monkeypatch.setattr(Background, "start", start_nothing)
    second.succession._keep_or_seek()
    assert not begun and len(table.outcomes([due.key, ended.key, failed.key])) == 3
    first.service.leadership.resign()
    second.succession._keep_or_seek()
    assert begun and second.leadership.leads
    assert set(table.outcomes([due.key, ended.key, failed.key])) == {due.key}
    assert table.open_keys([waiting.key]) == set()


def test_a_process_of_another_machine_joins_while_one_leads_and_not_alone(
    first: ProverScenario, join: Callable[..., ProverScenario], tmp_path: Path
) -> None:
    """It has no fence yet: whoever leads vouches for the database, and else nobody does."""
    start(first)
    ask(first, "bread", 2)
    second = join(tmp_path / "elsewhere")
    assert ask(second, "butter", 2)
    fence = second.service.open_windows.get("w1").fence
    assert fence.opened().head == first.service.open_windows.get("w1").log.entries.head()
    first.service.leadership.resign()
    third = join(tmp_path / "nobody")
    assert third.service.leadership.leads
    third.service.open_windows.get("w1")
    assert "fence is missing" in str(third.service.windows.get("w1").unusable)


def test_a_fence_of_a_process_that_is_gone_still_guards(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    """What only the other one answered is known to its file; nobody restores past it."""
    start(first)
    second = join()
    ask(second, "bread", 2)
    live = second.service.open_windows.get("w1")
    ahead = live.fence.path.with_name("ahead")
    live.fence.advance(replace(live.log.entries.head(), size=10_000), {})
    shutil.copy(live.fence.path, ahead)
    own = first.service.open_windows.get("w1").fence
    own.close()
    with pytest.raises(RestoredBackup, match="behind the fence"):
        own.open()


def test_a_deletion_that_its_leader_does_not_end_is_ended_by_the_next(
    first: ProverScenario, join: Callable[..., ProverScenario], tmp_path: Path
) -> None:
    """Over the API, on two machines: one statement, and nothing is given by either meanwhile."""
    found = Finished(first).archive()
    second = join(tmp_path / "elsewhere")
    first.clock.at(found.end + 601)
    path = "/v1/operator/windows/w1/delete"
    assert second.api.get(f"/v1/receipts/{found.receipt}", headers=first.headers("ada")).is_success
    refused = second.api.post(path, headers=first.operator)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1"), refused.text
    assert found.get("/v1/windows/w1/deletion").status_code == 404

    accepted = first.api.post(path, headers=first.operator)
    assert accepted.status_code == 200 and not accepted.json()["deleted"]["done"], accepted.text
    for each in (first, second):
        answer = each.api.get(f"/v1/receipts/{found.receipt}", headers=first.headers("ada"))
        assert answer.status_code == 404 and "deleted at" in answer.json()["detail"]
        assert each.api.get("/v1/windows/w1/deletion").status_code == 404
    first.service.leadership.resign()
    with pytest.raises(NotLeading):
        found.retention.step()
    assert 0 not in found.rows().values()

    assert second.service.leadership.attempt()
    second.service.retention.step()
    assert set(found.rows().values()) == {0}
    statement = found.statement()
    assert second.api.get("/v1/windows/w1/deletion").content == statement
    # Beside the fences of both: a backup of before is met wherever it comes back.
    for folder in (first.folder / "prover/fences", tmp_path / "elsewhere"):
        assert (folder / "w1.deletion").read_bytes() == statement
    key = first.service.verifier.keys().verdict
    Judged.read(found.bundle(tmp_path), key).verify_deletion(ProviderDeletion.parse(statement))
    again = second.api.post(path, headers=first.operator)
    assert again.json()["deleted"]["done"] and found.statement() == statement
