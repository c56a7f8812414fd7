"""The prover on PostgreSQL: a window with all of its tables, restarts, and writes at one time."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import postgresql_server
import pytest
from committing_together import together
from exact_windows import ask, change, later, shown, start
from ragaudit.embedders.base import Embedder
from ragaudit.encoding.errors import Conflict, InternalError, RefusedError
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.lifecycle.asking import receipt_id
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store, marks_of, taken_marks
from ragaudit.prover.store.states import State
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.records import count_records
from scenario import ProverScenario
from sqlalchemy import func, insert, select
from whole_windows import checked, verdict


@pytest.fixture
def url(postgresql: postgresql_server.Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, which the environment gives to the prover."""
    url = postgresql.create("prover")
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", url)
    return url


@pytest.fixture
def on_postgresql(url: str, make_scenario: Callable[..., ProverScenario]) -> ProverScenario:
    scenario = make_scenario()
    assert scenario.service.store.engine.name == "postgresql" and url
    return scenario


def answers(scenario: ProverScenario) -> int:
    with scenario.service.store.read() as connection:
        return count_records(connection, "w1")


def count(scenario: ProverScenario, table: Any) -> int:
    with scenario.service.store.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


@pytest.mark.slow
@pytest.mark.usefixtures("url")
def test_a_whole_window(make_scenario: Callable[..., ProverScenario], embedder: Embedder) -> None:
    """Retries, keys, what was served, versions and marks: the same after a restart."""
    scenario = make_scenario(embedder=lambda _: embedder)
    start(scenario, versions=True, length_seconds=300)
    ada = scenario.account("ada")
    first = ask(scenario, "bread", 3)
    request = Request.of(scenario.policy(), "butter", 2)
    keyed = scenario.service.asking.query(ada, request, idempotency_key="k1")
    gone = first.answer.documents[0].id
    change(scenario, gone, None)
    scenario.service.refresher.mark_stale("one")
    # Its own prepared statements and connections have nothing to do with what is stored.
    scenario.restart()
    assert ask(scenario, "bread", 3) == first
    assert scenario.service.asking.query(ada, request, idempotency_key="k1") == keyed
    with pytest.raises(Conflict, match="another request"):
        scenario.service.asking.query(
            ada, Request.of(scenario.policy(), "butter", 3), idempotency_key="k1"
        )
    ids = [document.id for document in first.answer.documents]
    assert [each.id for each in scenario.service.asking.served(ada, ids)] == ids[1:]
    assert scenario.service.asking.receipt(ada, receipt_id(keyed)) == keyed
    scenario.clock.at(scenario.policy().start + 45)
    assert scenario.service.refresher.step("w1") is True
    with scenario.service.store.read() as connection:
        assert marks_of(connection, "one") == taken_marks(connection, "w1", "one") >= 1
    later(scenario, 140)
    scenario.restart()
    second = ask(scenario, "bread", 3)
    assert second.public.query.version == 2
    assert shown(second)[0][0] != first.answer.documents[0].position
    assert (answers(scenario), count(scenario, tables.idempotency)) == (3, 1)
    scenario.service.driver.checkpoint("w1")
    checked(scenario, [first, keyed, second], embedder)
    found = verdict(scenario)
    assert (found["result"], found["counts"]["records"]) == ("PASS", 3), found["checks"]
    assert scenario.state() is State.ARCHIVED


def test_marks_at_one_time_are_all_counted(on_postgresql: ProverScenario) -> None:
    """None is lost, and the first of a tenant is made once, whoever comes together."""
    store, failed = on_postgresql.service.store, []
    with store.read() as connection:
        before = marks_of(connection, "two")
    gate = threading.Barrier(6)

    def mark(tenant: str) -> None:
        gate.wait(60)
        try:
            for _ in range(5):
                on_postgresql.service.refresher.mark_stale(tenant)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=mark, args=(name,)) for name in ("two", "new") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    with store.read() as connection:
        assert marks_of(connection, "two") == before + 15
        assert marks_of(connection, "new") == 15


def test_one_request_at_one_time_is_one_record(on_postgresql: ProverScenario) -> None:
    """Six threads send the same request, half of them with a key: one answer, one charge."""
    scenario = on_postgresql
    start(scenario)
    ada, gate = scenario.account("ada"), threading.Barrier(6)
    request = Request.of(scenario.policy(), "bread", 2)
    found: list[bytes] = []

    def query(key: str | None) -> None:
        gate.wait(60)
        file = scenario.service.asking.query(ada, request, idempotency_key=key)
        found.append(file.encode())

    threads = [threading.Thread(target=query, args=(key,)) for key in ("k", None) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 6 and len(set(found)) == 1
    assert answers(scenario) == 1


def test_a_prover_whose_database_another_one_took_writes_nothing_more(
    on_postgresql: ProverScenario, postgresql: postgresql_server.Server, url: str
) -> None:
    """Its session ended, with a restart of the server for instance, and another was faster."""
    scenario = on_postgresql
    start(scenario)
    scenario.service.store.take()
    assert ask(scenario, "bread", 2)
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )
    scenario.service.driver.step("w1")  # taken again: nobody else wanted it
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )
    other = Store.open(url)
    other.take()
    before = answers(scenario)
    with pytest.raises(RefusedError, match="another process serves this database"):
        scenario.service.driver.step("w1")
    answer = scenario.post("/v1/windows/w1/query", "ada", {"query": "butter", "top_k": 2})
    assert answer.status_code == 503
    assert "another process serves this database" in answer.json()["detail"]
    assert answers(scenario) == before
    other.close()


def test_an_id_that_no_database_takes_is_refused() -> None:
    """PostgreSQL holds no zero character: found when documents are read, not at an answer."""
    with pytest.raises(MalformedDocument, match="zero character"):
        Document("a\x00b", "text")


def test_a_tenant_that_two_add_at_one_time_is_one(on_postgresql: ProverScenario) -> None:
    """By ingesting and by settings, each in a transaction of its own that finds none."""
    service = on_postgresql.service
    store, failed = service.store, []
    gate = threading.Barrier(6)

    def ingest(name: str, number: int) -> None:
        documents = [Document(f"{name}-{number}-{n}", f"text {n}") for n in range(2)]
        StoredDocuments(store).add(name, documents)

    def add(number: int) -> None:
        gate.wait(60)
        try:
            for at in range(10):
                if number % 2:
                    service.accounts.ensure_tenants([f"new-{at}", f"new-{at}"])
                else:
                    ingest(f"new-{at}", number)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    assert {f"new-{at}" for at in range(10)} <= set(service.accounts.tenants())
    assert [StoredDocuments(store).count(f"new-{at}") for at in range(10)] == [6] * 10


def test_an_account_that_two_add_at_one_time_is_one(on_postgresql: ProverScenario) -> None:
    accounts = on_postgresql.service.accounts
    gate = threading.Barrier(6)
    made: list[str] = []
    refused: list[Exception] = []

    def add() -> None:
        for at in range(10):
            gate.wait(60)
            try:
                made.append(accounts.add("one", f"twin-{at}"))
            except Conflict as error:
                refused.append(error)

    threads = [threading.Thread(target=add) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert (len(made), len(refused)) == (10, 50)
    # Each key that was shown is the account's.
    assert sorted(accounts.authenticate(key).name for key in made) == [
        f"twin-{at}" for at in range(10)
    ]


def test_of_answers_that_share_a_transaction_one_fails_alone(
    on_postgresql: ProverScenario,
) -> None:
    start(on_postgresql)
    live = on_postgresql.service.open_windows.get("w1")
    store, before = on_postgresql.service.store, live.log.entries.head().size

    def good(number: int) -> Callable[[LogTransaction], int]:
        leaf = bytes([number] * 32)
        return lambda transaction: live.log.entries.append(transaction.connection, leaf)

    def bad(transaction: LogTransaction) -> None:
        live.log.entries.append(transaction.connection, b"b" * 32)
        # A statement that the server refuses, which leaves nothing usable but the savepoint.
        transaction.connection.execute(insert(tables.tenant).values(name="one"))

    works: list[Any] = [good(1), good(2), bad, good(3)]
    done = together(
        live._group, live.commit_lock, [partial(live.commit, store, work) for work in works]
    )
    with pytest.raises(InternalError, match="refused a statement"):
        done[2].result(60)
    assert [done[n].result(60) for n in (0, 1, 3)] == [before, before + 1, before + 2]
    assert live.log.entries.entries(before, before + 3) == tuple(bytes([n] * 32) for n in (1, 2, 3))
    live.log.entries.audit()
