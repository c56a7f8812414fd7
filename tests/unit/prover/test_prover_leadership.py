"""Several processes on one database: one leads, and a former leader writes nothing more."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import postgresql_server
import pytest
from databases import prover_tables
from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.advisory import Session, Turns, key_of
from ragaudit.ledger.log.database import open_engine
from ragaudit.prover.errors import NotLeading
from ragaudit.prover.store.database import Store, mark_stale, marks_of
from ragaudit.prover.store.fences import FenceFolder
from ragaudit.prover.store.leadership import Leadership, LeadersStore

PATIENCE = 60


@pytest.fixture
def url(make_database: Callable[..., str]) -> str:
    return make_database("postgresql", prover_tables)


@pytest.fixture
def stores(url: str) -> Iterator[tuple[Store, Store]]:
    with closing(Store.open(url)) as first, closing(Store.open(url)) as second:
        yield first, second


def end_sessions(postgresql: postgresql_server.Server) -> None:
    """As the server ends those of a process that stands still."""
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )


class TestLeading:
    def test_one_leads_and_the_next_takes_over(self, stores: tuple[Store, Store]) -> None:
        first, second = (Leadership(store) for store in stores)
        assert first.attempt() and first.attempt()
        assert not second.attempt() and not second.leads
        assert second.is_vouched() and not first.is_vouched()
        first.resign()
        assert not first.leads
        with pytest.raises(NotLeading, match="nobody leads"):
            second.is_vouched()
        assert second.attempt() and not first.attempt()
        second.resign()

    def test_a_former_leader_writes_nothing_more(
        self, stores: tuple[Store, Store], postgresql: postgresql_server.Server
    ) -> None:
        """It stood still: nothing told it that the server had ended its session."""
        first, second = (Leadership(store) for store in stores)
        old, new = (LeadersStore(*each) for each in zip(stores, (first, second), strict=True))
        assert first.attempt()
        with old.write() as connection:
            mark_stale(connection, "one")
        session = first._session
        assert session is not None
        end_sessions(postgresql)
        assert second.attempt()
        with pytest.raises(NotLeading), old.write() as connection:
            mark_stale(connection, "one")
        assert not first.leads
        with pytest.raises(NotLeading):
            old.hold()
        with new.write() as connection:
            mark_stale(connection, "one")
        with stores[0].read() as connection:
            assert marks_of(connection, "one") == 2
        second.resign()

    def test_a_take_over_waits_for_what_the_former_leader_writes(
        self, stores: tuple[Store, Store], postgresql: postgresql_server.Server
    ) -> None:
        first, second = (Leadership(store) for store in stores)
        old = LeadersStore(stores[0], first)
        assert first.attempt()
        taken = threading.Thread(target=second.attempt)
        with old.write() as connection:
            end_sessions(postgresql)
            taken.start()
            taken.join(0.5)
            assert taken.is_alive() and not second.leads
            mark_stale(connection, "one")
        taken.join(PATIENCE)
        assert second.leads
        with stores[0].read() as connection:
            assert marks_of(connection, "one") == 1
        second.resign()

    def test_whoever_never_contends_drives_alone(self, stores: tuple[Store, Store]) -> None:
        """As a tool on a database that nobody serves."""
        leadership = Leadership(stores[0])
        assert leadership.leads
        with LeadersStore(stores[0], leadership).write() as connection:
            mark_stale(connection, "one")


class TestServing:
    def test_many_serve_one_database_and_none_while_it_is_migrated(
        self, stores: tuple[Store, Store], url: str
    ) -> None:
        for store in stores:
            store.serve()
        with pytest.raises(RefusedError, match="another process serves this database"):
            Store.migrate(url)
        for store in stores:
            store.close()
        Store.migrate(url)
        with closing(Store.open(url)) as alone, closing(Store.open(url)) as late:
            alone.take()
            with pytest.raises(RefusedError, match="another process serves this database"):
                late.serve()

    def test_a_file_is_served_alone(self, make_database: Callable[..., str]) -> None:
        url = make_database("sqlite")
        prover_tables(url)
        with closing(Store.open(url)) as first, closing(Store.open(url)) as second:
            first.serve()
            with pytest.raises(RefusedError, match="another process serves this database"):
                second.serve()


class TestTurns:
    def test_one_process_at_a_time_has_a_turn(self, stores: tuple[Store, Store]) -> None:
        first, second = stores
        entered, left = threading.Event(), threading.Event()

        def other() -> None:
            with second.turn("w1", "ada"):
                assert left.is_set()
            entered.set()

        thread = threading.Thread(target=other)
        with first.turn("w1", "ada"), first.turn("w1", "ada"):
            thread.start()
            with second.turn("w1", "bea"):  # another account waits for nobody
                assert not entered.wait(0.3)
            left.set()
        thread.join(PATIENCE)
        assert entered.is_set()

    def test_turns_end_with_the_session_and_are_taken_anew(
        self, stores: tuple[Store, Store], postgresql: postgresql_server.Server
    ) -> None:
        first, second = stores
        with first.turn("w1", "ada"):
            end_sessions(postgresql)
            with second.turn("w1", "ada"):
                pass
        with first.turn("w1", "ada"):
            pass

    def test_who_waits_for_ever_is_told(
        self, stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ragaudit.ledger.log.advisory.LOCK_SECONDS", 0.1)
        first, second = stores
        with (
            first.turn("w1", "ada"),
            pytest.raises(StoreUnavailable, match="its turn"),
            second.turn("w1", "ada"),
        ):
            pass

    def test_a_turn_does_not_fail_for_a_session_that_the_server_ended_meanwhile(
        self, url: str, postgresql: postgresql_server.Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ragaudit.ledger.log.advisory._PING_SECONDS", 600)
        engine = open_engine(url)
        turns, key = Turns(engine), key_of("x")
        kept = turns.take(key)
        end_sessions(postgresql)
        turns.take(key).unlock([key])
        assert kept.ended
        turns.close()
        engine.dispose()

    def test_a_session_that_says_nothing_is_ended_by_the_server(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As that of a process that stands still; its locks are others' from then on."""
        monkeypatch.setattr("ragaudit.ledger.log.advisory.SILENT_SECONDS", 2)
        monkeypatch.setattr("ragaudit.ledger.log.advisory._PING_SECONDS", 600)
        engine = open_engine(url)
        still, other = Session(engine), Turns(engine)
        key = key_of("x")
        assert still.try_lock(key)
        other.take(key).unlock([key])
        with pytest.raises(StoreUnavailable):
            still.try_lock(key)
        other.close()
        engine.dispose()


class TestPlacesOfFences:
    def test_each_process_has_its_own_and_reads_the_others(
        self, tmp_path: pytest.TempPathFactory
    ) -> None:
        folder = tmp_path / "fences"  # type: ignore[operator]
        places = [FenceFolder(folder) for _ in range(3)]
        for place in places:
            place.take()
            place.take()
        paths = [place.path("w1") for place in places]
        assert paths == [
            folder / "w1.fence",
            folder / "process-2/w1.fence",
            folder / "process-3/w1.fence",
        ]
        for path in paths[:2]:
            path.touch()
        assert [place.others("w1") for place in places] == [
            [paths[1]], [paths[0]], [paths[0], paths[1]],
        ]  # fmt: skip
        places[1].release()
        late = FenceFolder(folder)
        late.take()
        assert late.path("w1") == paths[1]
