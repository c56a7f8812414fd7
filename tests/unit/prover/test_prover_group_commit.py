"""Answers that share a transaction: all durable or none, and nobody fails for somebody else."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from typing import Any

import pytest
from committing_together import together
from exact_windows import start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import Conflict, InternalError
from ragaudit.ledger.errors import RestoredBackup, StoreUnavailable
from ragaudit.ledger.log.fence import GROUP_RECORDS
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover import sequencer
from ragaudit.prover.errors import WindowUnusable
from ragaudit.prover.index.committed import CommittedIndex, Search
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import entries, records
from ragaudit.prover.window.registrations import find
from scenario import ProverScenario
from sqlalchemy import insert

PATIENCE = 30


USERS = [Account(f"user-{number}", "one") for number in range(16)]


@pytest.fixture
def live(scenario: ProverScenario) -> OpenWindow:
    start(scenario, users=[user.name for user in USERS], slots=32)
    return scenario.service.open_windows.get("w1")


def logged(scenario: ProverScenario) -> list[Record]:
    with scenario.service.store.read() as connection:
        return [each.record for each in records(connection, "w1")]


def size(live: OpenWindow) -> int:
    return live.log.entries.head().size


class TestQueries:
    """Through the whole way of an answer."""

    def test_sixteen_accounts_at_once_have_one_record_for_each_answer(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        groups: list[int] = []
        live.on_committed = lambda _seconds, answers: groups.append(answers)
        users = USERS[:16]
        before = size(live)

        def ask(user: Account) -> list[int]:
            asked = [Request.of(live.policy, f"{user.name} {turn}", 2) for turn in range(4)]
            return [scenario.service.asking.query(user, each).public.index for each in asked]

        groups.clear()
        calls = [partial(ask, user) for user in users]
        done = together(live._group, live.commit_lock, calls)
        places = [place for each in done for place in each.result(PATIENCE)]
        assert sorted(places) == list(range(before, before + 64)) and size(live) == before + 64
        counters = Counter((each.pseudonym, each.counter) for each in logged(scenario))
        assert counters == {
            (live.pseudonym_of(user.name), turn): 1 for user in users for turn in range(4)
        }
        assert sum(groups) == 64 and groups[0] == 1 and groups[1] >= 15
        fence = live.fence.opened()
        assert fence.head == live.log.entries.head()
        assert all(fence.records[live.pseudonym_of(user.name)] == 4 for user in users)

    def test_nobody_is_answered_before_the_fence_is_durable(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        users = USERS[:4]
        before, honest = size(live), live.fence.advance

        def full(*_: Any) -> None:
            raise StoreUnavailable("no room for the fence")

        live.fence.advance = full  # type: ignore[assignment, method-assign]
        request = Request.of(live.policy, "bread", 2)
        calls = [partial(scenario.service.asking.query, user, request) for user in users]
        for each in together(live._group, live.commit_lock, calls):
            with pytest.raises(StoreUnavailable, match="no room"):
                each.result(PATIENCE)
        live.fence.advance = honest  # type: ignore[method-assign]
        # Durable in the database: who asks again gets that answer, and is charged once.
        assert size(live) == before + 4
        found = {scenario.service.asking.query(user, request).public.index for user in users}
        assert found == set(range(before, before + 4)) and size(live) == before + 4
        assert live.fence.opened().head == live.log.entries.head()

    def test_after_a_crash_between_commit_and_fence_the_same_answers_leave(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        users = USERS[:4]

        class Killed(BaseException):
            """Nothing handles it, as nothing handles a SIGKILL."""

        def killed(*_: Any) -> None:
            raise Killed

        before = size(live)
        live.fence.advance = killed  # type: ignore[assignment, method-assign]
        request = Request.of(live.policy, "bread", 2)
        calls = [partial(scenario.service.asking.query, user, request) for user in users]
        for each in together(live._group, live.commit_lock, calls):
            with pytest.raises(Killed):
                each.result(PATIENCE)
        scenario.restart()
        again = scenario.service.open_windows.get("w1")
        assert again.fence.opened().head.size < size(again) == before + 4
        found = {scenario.service.asking.query(user, request).public.index for user in users}
        assert found == set(range(before, before + 4)) and size(again) == before + 4
        assert sorted(each.counter for each in logged(scenario)) == [0] * 4

    def test_a_refusal_of_one_is_nobody_elses(
        self, scenario: ProverScenario, live: OpenWindow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        users = USERS[:5]
        before, unlucky = size(live), live.pseudonym_of(users[2].name)
        honest = live.fence.check_account

        def check(pseudonym: bytes, used: int) -> None:
            if pseudonym == unlucky:
                raise Conflict("the account's counter moved", where="w1")
            honest(pseudonym, used)

        monkeypatch.setattr(live.fence, "check_account", check)
        request = Request.of(live.policy, "bread", 2)
        calls = [partial(scenario.service.asking.query, user, request) for user in users]
        done = together(live._group, live.commit_lock, calls)
        with pytest.raises(Conflict, match="counter moved"):
            done[2].result(PATIENCE)
        assert {done[n].result(PATIENCE).public.index for n in (0, 1, 3, 4)} == set(
            range(before, before + 4)
        )
        assert unlucky not in live.fence.opened().records
        with scenario.service.store.read() as connection:
            current = find(connection, "w1", users[2].name)
        assert current is not None and current.counter == 0


def entry(live: OpenWindow, transaction: LogTransaction, text: bytes) -> int:
    salt = text.ljust(32, b"\0")
    return transaction.append("x", salt, text)


FAILURES: dict[str, tuple[Callable[[], BaseException], type[BaseException], str]] = {
    "ours": (lambda: Conflict("not now"), Conflict, "not now"),
    "a fault": (lambda: ZeroDivisionError("a bug"), ZeroDivisionError, "a bug"),
}


class TestMembers:
    """Changes of the log that share a transaction, one of which fails."""

    @pytest.mark.parametrize("name", [*FAILURES, "a key twice"])
    def test_what_one_member_did_is_undone_alone(
        self, scenario: ProverScenario, live: OpenWindow, name: str
    ) -> None:
        before = size(live)

        def bad(transaction: LogTransaction) -> None:
            transaction.use_counter(b"b" * 32, 0, 1)
            place = entry(live, transaction, b"bad")
            if name in FAILURES:
                raise FAILURES[name][0]()
            row = {"window": "w1", "position": place, "kind": "x", "salt": b"", "body": b""}
            transaction.connection.execute(insert(tables.entry).values(row))

        def good(number: int) -> Callable[[LogTransaction], int]:
            def work(transaction: LogTransaction) -> int:
                transaction.use_counter(bytes([number]) * 32, 0, 1)
                return entry(live, transaction, b"good %d" % number)

            return work

        works: list[Any] = [good(1), good(2), bad, good(3)]
        store = scenario.service.store
        done = together(
            live._group,
            live.commit_lock,
            [partial(live.commit, store, work) for work in works],
        )
        _, kind, words = FAILURES.get(name, (None, InternalError, "refused a statement"))
        with pytest.raises(kind, match=words) as caught:
            done[2].result(PATIENCE)
        assert "salt" not in str(caught.value)
        assert [done[n].result(PATIENCE) for n in (0, 1, 3)] == [before, before + 1, before + 2]
        with store.read() as connection:
            bodies = [each.body for each in entries(connection, "w1", before)]
        assert bodies == [b"good 1", b"good 2", b"good 3"]
        assert live.fence.opened().records.keys() >= {bytes([n]) * 32 for n in (1, 2, 3)}
        assert b"b" * 32 not in live.fence.opened().records
        live.log.entries.audit()

    def test_the_later_of_two_times_of_an_account_is_stored(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        """An answer is logged while its account asks the next question, in one transaction."""
        first, second = (user.name for user in USERS[:2])

        def count(transaction: LogTransaction) -> None:
            registered = transaction.registered(second)
            assert registered is not None
            transaction.count(registered, 8)

        works: list[Any] = [
            lambda transaction: entry(live, transaction, b"alone"),
            lambda transaction: transaction.advance_time(first, 1),
            count,
            lambda transaction: transaction.advance_time(second, 9),
        ]
        store = scenario.service.store
        for each in together(
            live._group, live.commit_lock, [partial(live.commit, store, work) for work in works]
        ):
            each.result(PATIENCE)
        with store.read() as connection:
            stored = find(connection, "w1", second)
        assert stored is not None and (stored.counter, stored.last_time) == (1, 9)
        assert live.registered(store, second) == stored

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (StoreUnavailable("the disk is gone"), StoreUnavailable),
            (RestoredBackup("the database is behind"), WindowUnusable),
        ],
    )
    def test_what_puts_the_transaction_in_doubt_undoes_all_of_it(
        self,
        scenario: ProverScenario,
        live: OpenWindow,
        error: BaseException,
        expected: type[BaseException],
    ) -> None:
        before = size(live)

        def bad(_: LogTransaction) -> None:
            raise error

        works: list[Any] = [
            lambda transaction: entry(live, transaction, b"alone"),
            lambda transaction: entry(live, transaction, b"with the bad one"),
            bad,
            lambda transaction: entry(live, transaction, b"after it"),
        ]
        store = scenario.service.store
        done = together(
            live._group,
            live.commit_lock,
            [partial(live.commit, store, work) for work in works],
        )
        assert done[0].result(PATIENCE) == before
        for each in done[1:]:
            with pytest.raises(expected):
                each.result(PATIENCE)
        assert size(live) == before + 1 and live.fence.opened().head.size == before + 1
        # The next one is not held up by what failed.
        assert live.commit(store, lambda t: entry(live, t, b"next")) == before + 1

    def test_no_transaction_has_more_accounts_than_a_fence_takes(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        groups: list[int] = []
        live.on_committed = lambda _seconds, answers: groups.append(answers)

        def work(number: int) -> Callable[[LogTransaction], None]:
            pseudonym = number.to_bytes(32, "big")
            return lambda transaction: transaction.use_counter(pseudonym, 0, 1)

        works = [work(number + 1) for number in range(2 * GROUP_RECORDS)]
        done = together(
            live._group,
            live.commit_lock,
            [partial(live.commit, scenario.service.store, each) for each in works],
        )
        assert [each.result(PATIENCE) for each in done] == [None] * len(works)
        assert groups == [1, GROUP_RECORDS, GROUP_RECORDS - 1]


def sequenced(scenario: ProverScenario, *calls: Callable[[], Any]) -> list[Any]:
    """Make calls as questions that come together; return what came of each."""

    async def run() -> list[Any]:
        running = [scenario.service.sequencer.run(call) for call in calls]
        return await asyncio.gather(*running, return_exceptions=True)

    return asyncio.run(run())


class TestSequenced:
    """Questions that run in one thread."""

    def test_all_that_come_together_share_one_transaction(
        self, scenario: ProverScenario, live: OpenWindow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        groups: list[int] = []
        live.on_committed = lambda _seconds, answers: groups.append(answers)
        # However slow the machine is: nothing goes aside, from where each would come when it can.
        monkeypatch.setattr(sequencer, "_AT_ONCE_SECONDS", inf)
        live.catch_up()
        searched, honest = list[int](), CommittedIndex.find_best

        def counted(index: CommittedIndex, searches: Sequence[Search]) -> None:
            searched.append(len(searches))
            honest(index, searches)

        monkeypatch.setattr(CommittedIndex, "find_best", counted)
        request = Request.of(live.policy, "bread", 2)
        calls = [partial(scenario.service.asking.query, user, request) for user in USERS]
        before = size(live)
        found = sequenced(scenario, *calls)
        assert [each.public.index for each in found] == list(range(before, before + 16))
        assert groups == searched == [16]

    def test_each_retry_among_them_is_found(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        """Of each account the latest of its own, in one search for all."""

        def calls(count: int, text: str) -> list[Callable[[], Any]]:
            request = Request.of(live.policy, text, 2)
            return [partial(scenario.service.asking.query, user, request) for user in USERS[:count]]

        first = sequenced(scenario, *calls(3, "bread"), *calls(2, "rolls"))
        before = size(live)
        again = sequenced(scenario, *calls(5, "bread"))
        assert again[:3] == first[:3] and size(live) == before + 2
        assert {each.public.index for each in again[3:]} == {before, before + 1}
        scenario.clock.now += 1000 * live.policy.retrieval.retry_seconds + 1
        assert sequenced(scenario, *calls(1, "bread"))[0].public.index == before + 2

    def test_more_than_a_fence_takes_are_several_transactions(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        groups: list[int] = []
        live.on_committed = lambda _seconds, answers: groups.append(answers)

        def member(number: int) -> Callable[[LogTransaction], int]:
            def work(transaction: LogTransaction) -> int:
                transaction.use_counter(bytes([number + 1]) * 32, 0, 1)
                return number

            return work

        store, count = scenario.service.store, GROUP_RECORDS + 8
        calls = [partial(live.commit, store, member(number)) for number in range(count)]
        assert sequenced(scenario, *calls) == list(range(count)) and groups == [GROUP_RECORDS, 8]

    def test_threads_that_commit_beside_them_lose_nothing(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        store, before = scenario.service.store, size(live)

        def member(name: bytes) -> Callable[[], int]:
            return lambda: live.commit(store, lambda t: entry(live, t, name))

        with ThreadPoolExecutor(3) as pool:
            beside = [pool.submit(member(b"t%d" % number)) for number in range(30)]
            found = [sequenced(scenario, *map(member, (b"a", b"b", b"c"))) for _ in range(10)]
        places = [place for each in found for place in each] + [each.result() for each in beside]
        assert sorted(places) == list(range(before, before + 60))
        assert live.log.entries.audit().size == before + 60

    def test_one_that_fails_is_nobody_elses(
        self, scenario: ProverScenario, live: OpenWindow
    ) -> None:
        store, before = scenario.service.store, size(live)

        def bad(transaction: LogTransaction) -> None:
            row = {"window": "w1", "position": 0, "kind": "x", "salt": b"", "body": b""}
            transaction.connection.execute(insert(tables.entry).values(row))

        def good(transaction: LogTransaction) -> int:
            return entry(live, transaction, b"good")

        works: list[Any] = [good, bad, good]
        found = sequenced(scenario, *(partial(live.commit, store, work) for work in works))
        assert found[::2] == [before, before + 1] and isinstance(found[1], InternalError)

    def test_nobody_is_answered_where_the_fence_is_not_durable(
        self, scenario: ProverScenario, live: OpenWindow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise StoreUnavailable("no room for the fence")

        request, before = Request.of(live.policy, "bread", 2), size(live)
        calls = [partial(scenario.service.asking.query, user, request) for user in USERS[:4]]
        with monkeypatch.context() as patch:
            patch.setattr(live.fence, "advance", full)
            assert all(isinstance(each, StoreUnavailable) for each in sequenced(scenario, *calls))
        again = sequenced(scenario, *calls)
        assert {each.public.index for each in again} == set(range(before, before + 4))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12))
def test_of_any_members_the_log_holds_exactly_those_that_succeed(
    scenario: ProverScenario, live: OpenWindow, plan: list[tuple[int, bool]]
) -> None:
    """``plan``: how many entries each member appends, and whether it fails then."""
    store, before = scenario.service.store, size(live)

    def member(number: int, count: int, fails: bool) -> Callable[[LogTransaction], int]:
        def work(transaction: LogTransaction) -> int:
            for turn in range(count):
                entry(live, transaction, bytes([number, turn]))
            if fails:
                raise Conflict("not this one")
            return number

        return work

    works = [member(number, *each) for number, each in enumerate(plan)]
    calls = [partial(live.commit, store, work) for work in works]
    done = together(live._group, live.commit_lock, calls) if calls else []
    for number, (each, (_, fails)) in enumerate(zip(done, plan, strict=True)):
        assert (each.exception(PATIENCE) is not None) == fails
        assert fails or each.result() == number
    with store.read() as connection:
        bodies = [each.body for each in entries(connection, "w1", before)]
    assert bodies == [
        bytes([number, turn])
        for number, (count, fails) in enumerate(plan)
        for turn in range(0 if fails else count)
    ]
    assert live.log.entries.audit().size == before + len(bodies)
