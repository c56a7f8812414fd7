"""Later versions of an index within a window: writes are taken up at an allowed instant."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from databases import ON_EACH_ENGINE_SLOWLY
from exact_windows import ask, change, later, shown, start, texts
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import (
    IndexInUse,
    MalformedDocument,
    UnknownTenant,
    VerifierUnreachable,
    WrongState,
)
from ragaudit.prover.index.builder import Source, following
from ragaudit.prover.lifecycle.refreshing import Refresher
from ragaudit.prover.store.database import marks_of, taken_marks
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import entries_of
from scenario import ProverScenario
from whole_windows import refreshed

pytestmark = ON_EACH_ENGINE_SLOWLY

VERSIONS: dict[str, Any] = {"versions": True}


def index(scenario: ProverScenario, version: int) -> Any:
    return scenario.service.open_windows.get("w1").index_of("one", version)


def edited() -> list[Document]:
    """The documents after a change: 2 has another text, 5 is gone, one is new, another order."""
    kept = [each for each in texts() if each.id != "one-5"]
    changed = [
        Document(each.id, "a new text", each.attributes) if each.id == "one-2" else each
        for each in kept
    ]
    new = Document("one-99", "document 99 of one", attributes_text({"year": 2024}, "d"))
    return [new, *reversed(changed)]


def replace_all(scenario: ProverScenario, documents: list[Document]) -> None:
    StoredDocuments(scenario.service.store).add("one", documents, replace=True)


class TestVersions:
    """A version keeps positions, hides what changed, and is in force from its instant on."""

    def test_positions_are_stable(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        assert scenario.service.refresher.refresh("w1", "one") == 2
        before, after = index(scenario, 1), index(scenario, 2)
        assert after.ids == (*before.ids, "one-99")
        gone = before.ids.index("one-5")
        assert not after.vectors[gone].any() and after.columns[gone] == "null"
        assert set(before.columns) & {"null"} == set()
        same = [at for at, name in enumerate(before.ids) if name not in {"one-2", "one-5"}]
        assert np.array_equal(after.rows[same], before.rows[same])
        # Every row is blinded anew, changed or not.
        for at in range(before.count):
            assert (
                after.commitments[32 * at : 32 * at + 32]
                != (before.commitments[32 * at : 32 * at + 32])
            )
        # A document that comes back has its old place.
        replace_all(scenario, texts())
        assert scenario.service.refresher.refresh("w1", "one") == 3
        back = index(scenario, 3)
        assert np.array_equal(back.rows[: before.count], before.rows)
        assert not back.vectors[before.count].any()
        assert (back.columns[gone], back.columns[before.count]) == (before.columns[gone], "null")

    def test_it_is_in_force_from_its_instant(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        first = ask(scenario, "a new text", 4)
        assert first.public.query.version == 1
        replace_all(scenario, edited())
        assert scenario.service.refresher.refresh("w1", "one") == 2
        # Until then what changed is withdrawn, in its new and its old form.
        scenario.clock.at(scenario.policy().start + 70)
        between = ask(scenario, "a new text", 4)
        assert between.public.query.version == 1
        assert {row.id for row in between.private.withdrawn} <= {"one-2", "one-5"}
        assert not {row.id for row in between.answer.documents} & {"one-2", "one-5", "one-99"}
        later(scenario, 140)
        second = ask(scenario, "a new text", 4)
        record = second.public.query
        assert (record.version, record.rows, record.activation) == (2, 13, 2)
        assert second.answer.documents[0].id == "one-2"
        assert second.answer.documents[0].content == "a new text"
        assert not {row.id for row in second.answer.documents} & {"one-5"}

    def test_no_answer_while_it_is_unknown(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        scenario.service.refresher.refresh("w1", "one")
        scenario.service.driver.checkpoint("w1")
        # The instant has passed, and the verifier's release has not arrived.
        scenario.clock.at(scenario.policy().start + 105)
        body = {"query": "bread", "top_k": 2}
        answer = scenario.post("/v1/windows/w1/query", "ada", body)
        assert answer.status_code == 503 and "refusal" in answer.json()

    def test_nothing_changed(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        size = scenario.service.open_windows.get("w1").log.entries.head().size
        assert scenario.service.refresher.refresh("w1", "one") == 1
        assert scenario.service.open_windows.get("w1").log.entries.head().size == size

    def test_shown_to_everybody(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        scenario.service.refresher.refresh("w1", "one")
        scenario.service.driver.checkpoint("w1")
        [entry] = scenario.api.get("/v1/windows/w1").json()["versions"]
        version = Version.parse(bytes.fromhex(entry["body"]))
        assert (version.tenant, version.version, version.rows) == ("one", 2, 13)
        assert version.index_root == index(scenario, 2).root

    def test_after_a_restart(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        scenario.service.refresher.refresh("w1", "one")
        later(scenario, 140)
        scenario.restart()
        assert ask(scenario, "a new text", 2).public.query.version == 2

    def test_an_interrupted_one_is_continued(self, make_scenario: Any) -> None:
        class Cut(Refresher):
            fails = 1

            def _publish(self, live: Any, version: Any) -> None:
                if self.fails:
                    self.fails -= 1
                    raise VerifierUnreachable("killed here")
                super()._publish(live, version)

        scenario = make_scenario(refresher=Cut)
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        with pytest.raises(VerifierUnreachable):
            scenario.service.refresher.refresh("w1", "one")
        # What was stored is published; what changed since then waits for the next one.
        replace_all(scenario, texts())
        assert scenario.service.refresher.refresh("w1", "one") == 2
        assert "one-99" in index(scenario, 2).ids
        with scenario.service.store.read() as connection:
            assert marks_of(connection, "one") > taken_marks(connection, "w1", "one")
        assert scenario.service.refresher.refresh("w1", "one") == 3

    def test_one_that_was_logged_just_before_a_failure(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        live = scenario.service.open_windows.get("w1")
        honest = live.fence.advance

        def full(*_: Any) -> None:
            live.fence.advance = honest  # type: ignore[method-assign]
            raise StoreUnavailable("no room for the fence")

        live.fence.advance = full  # type: ignore[assignment, method-assign]
        with pytest.raises(StoreUnavailable):
            scenario.service.refresher.refresh("w1", "one")
        # Its entry is durable, so it comes into force; and it is logged once.
        assert scenario.service.refresher.step("w1") is True
        assert live.versions.latest("one").version == 2
        assert scenario.service.refresher.refresh("w1", "one") == 2
        with scenario.service.store.read() as connection:
            assert len(entries_of(connection, "w1", Version.KIND)) == 1
        later(scenario, 140)
        assert ask(scenario, "a new text", 4).public.query.version == 2

    def test_vectors_of_another_length_are_refused(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        before = index(scenario, 1)
        now = Source(
            ids=before.ids,
            content_digests=before.content_digests,
            columns=before.columns,
            rows=before.rows[:, 1:],
        )
        with pytest.raises(MalformedDocument, match="entries"):
            following(now, before, lambda rows: rows)


class TestWhoMay:
    """Versions are the policy's to allow."""

    def test_not_without_the_policy(self, scenario: ProverScenario) -> None:
        start(scenario)
        with pytest.raises(WrongState, match="no versions"):
            scenario.service.refresher.refresh("w1", "one")
        with pytest.raises(IndexInUse):
            replace_all(scenario, edited())
        assert scenario.service.refresher.step("w1") is False

    def test_not_for_others(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        with pytest.raises(UnknownTenant):
            scenario.service.refresher.refresh("w1", "three")
        path = "/v1/operator/windows/w1/tenants/one/refresh"
        assert scenario.api.post(path).status_code == 401
        assert scenario.api.post(path, headers=scenario.headers("ada")).status_code == 401
        answer = scenario.api.post(path, headers=scenario.operator)
        assert answer.json() == {"window": "w1", "tenant": "one", "version": 1}

    def test_not_behind_the_last_instant(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        scenario.clock.at(scenario.policy().activation_instants[-2])
        with pytest.raises(WrongState, match="no instant"):
            scenario.service.refresher.refresh("w1", "one")


class TestMarks:
    """What is stale is taken up before the next instant."""

    def test_before_each_instant(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        refresher = scenario.service.refresher
        replace_all(scenario, edited())
        # Long before the instant nothing is done: more writes may come.
        assert refresher.step("w1") is True
        assert scenario.service.open_windows.get("w1").versions.latest("one").version == 1
        scenario.clock.at(scenario.policy().start + 45)
        assert refresher.step("w1") is True and refresher.step("w1") is True
        assert scenario.service.open_windows.get("w1").versions.latest("one").version == 2
        with scenario.service.store.read() as connection:
            assert marks_of(connection, "one") == taken_marks(connection, "w1", "one")
            assert len(entries_of(connection, "w1", Version.KIND)) == 1

    def test_a_mark_that_comes_meanwhile_stays(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        service = scenario.service
        honest = service.backend.pages

        def pages(tenant: str, rows: int) -> Any:
            yield from honest(tenant, rows)
            service.refresher.mark_stale(tenant)

        service.backend.pages = pages  # type: ignore[method-assign]
        change(scenario, "one-2", "a new text")
        service.refresher.mark_stale("one")
        assert service.refresher.refresh("w1", "one") == 2
        with service.store.read() as connection:
            assert marks_of(connection, "one") == taken_marks(connection, "w1", "one") + 1

    def test_one_tenants_documents_keep_back_no_others(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        service = scenario.service
        honest = service.backend.pages

        def pages(tenant: str, rows: int) -> Any:
            if tenant == "one":
                raise MalformedDocument("no vector", where="document one-2")
            yield from honest(tenant, rows)

        service.backend.pages = pages  # type: ignore[method-assign]
        for tenant in ("one", "two"):
            service.refresher.mark_stale(tenant)
        scenario.clock.at(scenario.policy().start + 45)
        with pytest.raises(MalformedDocument):
            service.refresher.step("w1")
        with service.store.read() as connection:
            assert taken_marks(connection, "w1", "one") < marks_of(connection, "one")
            assert taken_marks(connection, "w1", "two") == marks_of(connection, "two")

    def test_the_window_ends(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        scenario.service.refresher.mark_stale("one")
        scenario.clock.at(scenario.policy().end)
        assert scenario.service.refresher.step("w1") is False
        scenario.drive(State.CLOSED)
        assert scenario.service.refresher.step("w1") is False


class TestByItselfAndByCommand:
    """The running service takes up what is stale; an operator does not have to wait for it."""

    def test_the_service_does_it_before_an_instant(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        replace_all(scenario, edited())
        scenario.service.start()
        scenario.clock.at(scenario.policy().start + 45)
        deadline = time.monotonic() + 120
        while index_count(scenario) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # What was taken up is not taken up again before the next instant.
        scenario.clock.at(scenario.policy().start + 170)
        assert scenario.service.refresher.step("w1") is True
        assert index_count(scenario) == 2

    def test_an_operator_does_it_at_once(self, scenario: ProverScenario) -> None:
        start(scenario, **VERSIONS)
        assert refreshed(scenario) == {"window": "w1", "tenant": "one", "version": 1}
        replace_all(scenario, edited())
        assert refreshed(scenario) == {"window": "w1", "tenant": "one", "version": 2}
        assert refreshed(scenario) == {"window": "w1", "tenant": "one", "version": 2}
        assert "one-99" in index(scenario, 2).ids
        later(scenario, 140)
        assert ask(scenario, "a new text", 2).public.query.version == 2
        assert refreshed(scenario, "three", code=4)["problem"] == "service-refused"

    def test_what_was_changed_without_a_mark_is_found(self, scenario: ProverScenario) -> None:
        """The command reads the documents; it does not believe that none has changed."""
        start(scenario, **VERSIONS)
        change(scenario, "one-2", "a new text")
        assert refreshed(scenario)["version"] == 2


def index_count(scenario: ProverScenario) -> int:
    """Return the number of versions of the index of tenant one that are logged."""
    version: int = scenario.service.open_windows.get("w1").versions.latest("one").version
    return version


def test_a_store_that_keeps_one_window_waiting_keeps_no_other(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scenario, **VERSIONS)
    replace_all(scenario, edited())
    refresher, reading, goes_on = scenario.service.refresher, Event(), Event()

    def stuck(*_: Any) -> Any:
        reading.set()
        goes_on.wait(60)
        raise VerifierUnreachable("the end of the test")

    live = scenario.service.open_windows.get("w1")
    other = SimpleNamespace(policy=live.policy, refreshing=Lock(), catch_up=lambda: None)
    windows = SimpleNamespace(get=lambda name: live if name == "w1" else other)
    monkeypatch.setattr(refresher, "_commit", stuck)
    monkeypatch.setattr(refresher, "_open_windows", windows)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(refresher.refresh, "w1", "one")
        assert reading.wait(60)
        try:
            # Its own row has the state of the first one.
            stored, get = refresher._windows, refresher._windows.get
            monkeypatch.setattr(stored, "get", lambda _name, *rest: get("w1", *rest))
            assert pool.submit(refresher.step, "w2").result(10)
        finally:
            goes_on.set()
        assert isinstance(first.exception(60), VerifierUnreachable)


def test_null_rows_take_no_documents_place(scenario: ProverScenario) -> None:
    """Every document that is left scores below zero, and K of them come back all the same."""
    start(scenario, **VERSIONS)
    replace_all(scenario, [each for each in texts() if each.id not in {"one-3", "one-5", "one-7"}])
    assert scenario.service.refresher.refresh("w1", "one") == 2
    later(scenario, 140)
    committed = index(scenario, 2)
    live = [at for at, text in enumerate(committed.columns) if text != "null"]
    assert len(live) == 9 and committed.column_arrays.null_rows == 3
    away = -committed.vectors.astype(np.float64).sum(axis=0)
    vector = b64_encode(float32_bytes(away.tolist()))
    answer = scenario.post("/v1/windows/w1/query", "ada", {"vector": vector, "top_k": 4})
    assert answer.status_code == 200, answer.text
    file = ReceiptFile.parse(answer.content)
    e = np.array(file.private.openings.embedding, dtype=np.int64)
    scores = committed.vectors.astype(np.int64) @ e
    assert max(scores[at] for at in live) < 0
    ranked = sorted((-int(scores[at]), at) for at in live)[:4]
    assert shown(file) == [(at, -score) for score, at in ranked]
    assert not file.private.withdrawn


def test_answers_are_those_of_the_version(scenario: ProverScenario) -> None:
    start(scenario, **VERSIONS)
    replace_all(scenario, edited())
    scenario.service.refresher.refresh("w1", "one")
    later(scenario, 140)
    file = ask(scenario, "document 7", 4)
    committed = index(scenario, 2)
    e = np.array(file.private.openings.embedding, dtype=np.int64)
    scores = committed.vectors.astype(np.int64) @ e
    ranked = sorted((-int(score), at) for at, score in enumerate(scores))[:4]
    gone = committed.ids.index("one-5")
    assert shown(file) == [(at, -score) for score, at in ranked if at != gone]
