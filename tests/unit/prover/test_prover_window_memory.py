"""A finished window leaves memory at once, and a thousand of them leave a constant."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from exact_windows import ask, change, later, start
from finished_windows import Finished
from memory_taken import peak
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.entries import Charge
from ragaudit.prover.background import Background
from ragaudit.prover.index.committed import CommittedIndex, load_index
from ragaudit.prover.lifecycle import open_windows
from ragaudit.prover.lifecycle.evidence import TenantCharges, charges_among
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.window.open_window import IndexVersions
from scenario import ProverScenario
from sqlalchemy import insert
from whole_windows import checked, verdict


def parts(service: Any) -> Iterator[tuple[str, Any]]:
    """Every attribute of the service and of the parts of ours that it reaches."""
    seen, waiting = set[int](), [("service", service)]
    while waiting:
        path, part = waiting.pop()
        if id(part) in seen or not hasattr(part, "__dict__"):
            continue
        seen.add(id(part))
        for name, value in vars(part).items():
            yield f"{path}.{name}", value
            members = value if isinstance(value, (list, tuple)) else [value]
            ours = (each for each in members if type(each).__module__.startswith("ragaudit."))
            waiting.extend((f"{path}.{name}", each) for each in ours)


def named(value: Any, names: tuple[str, str]) -> bool:
    """Whether a container has something under the name of a window, or of its log."""
    if not isinstance(value, (dict, set)):
        return False
    keys = [part for key in value for part in (key if isinstance(key, tuple) else (key,))]
    return any(name in keys for name in names)


def test_nothing_of_a_finished_window_stays(scenario: ProverScenario) -> None:
    finished, service = Finished(scenario), scenario.service
    live, origin = service.open_windows.get("w1"), scenario.policy().origin
    held = {
        "window": live,
        "log": live.log,
        "fence": live.fence,
        "versions": live.versions,
        "epochs": live.epochs,
        **{f"index {number}": index for number, index in enumerate(live.versions.held())},
    }
    left = {name: weakref.ref(each) for name, each in held.items()}
    del live, held
    # Nobody looks for circles in a large process for hours: without one it is gone at once.
    gc.collect()
    gc.disable()
    try:
        finished.archive()
        assert [name for name, each in left.items() if each() is not None] == []
    finally:
        gc.enable()
    service.driver.failures["w1"] = "why"
    assert [path for path, value in parts(service) if named(value, ("w1", origin))] != []
    service.driver.forget("w1")
    service.cosigning.step("w1")
    service.watcher.step()
    assert [path for path, value in parts(service) if named(value, ("w1", origin))] == []


def test_a_thousand_windows_leave_a_constant() -> None:
    window = SimpleNamespace(state=State.ARCHIVED, unusable=None, handed_over=True)
    forgotten: list[str] = []
    background = Background(
        windows=SimpleNamespace(get=lambda _: window, unfinished=list),  # type: ignore[arg-type]
        open_windows=SimpleNamespace(forget=forgotten.append),  # type: ignore[arg-type]
        driver=SimpleNamespace(step=lambda _: False, failures={}, forget=lambda _: None),  # type: ignore[arg-type]
        refresher=SimpleNamespace(step=lambda _: False),  # type: ignore[arg-type]
        cosigning=SimpleNamespace(step=lambda _: False, every_seconds=0),  # type: ignore[arg-type]
        retention=SimpleNamespace(step=lambda: None),  # type: ignore[arg-type]
        timing=TimingSettings(),
    )
    background.start()
    for number in range(1000):
        background.drive(f"w{number}")
        for thread in threading.enumerate():
            if thread.name.endswith(f" w{number}"):
                thread.join()
    assert len(forgotten) == 1000 and not background._driven
    assert len(background._threads) <= 5
    background.stop()


# Which versions of an index are in memory, and what is still proven of those that are not.


def versions(scenario: ProverScenario) -> IndexVersions:
    return scenario.service.open_windows.get("w1").versions


def refresh(scenario: ProverScenario, text: str) -> None:
    """Change a document and log the version that has it."""
    change(scenario, "one-3", text)
    scenario.service.refresher.mark_stale("one")
    scenario.service.refresher.refresh("w1", "one")


def test_superseded_versions_are_let_go_and_still_proven(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scenario, versions=True)
    files = [ask(scenario, "bread")]
    held = versions(scenario)
    refs = [weakref.ref(held.latest("one"))]
    refresh(scenario, "a second text")
    # Not in force yet: both are needed.
    assert held.in_memory("one") == [1, 2]
    later(scenario, 140)
    files.append(ask(scenario, "rolls"))
    assert held.in_memory("one") == [2]
    refs.append(weakref.ref(held.latest("one")))
    refresh(scenario, "a third text")
    later(scenario, 240)
    files.append(ask(scenario, "cake"))
    assert held.in_memory("one") == [3]
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
    # What was answered from them is had again, and is proven after the window.
    scenario.service.driver.checkpoint("w1")
    for file in files:
        name = f"w1.{file.public.index}"
        again = scenario.api.get(f"/v1/receipts/{name}", headers=scenario.headers("ada"))
        assert again.content == file.encode()
    checked(scenario, files)
    loaded: list[tuple[str, int]] = []

    def noted(connection: Any, window: str, tenant: str, version: int) -> CommittedIndex:
        loaded.append((tenant, version))
        return load_index(connection, window, tenant, version)

    monkeypatch.setattr(open_windows, "load_index", noted)
    predicate = verdict(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    assert {file.public.query.version for file in files} == {1, 2, 3}
    assert set(loaded) == {("one", 1), ("one", 2)}


def test_a_restart_holds_no_more(scenario: ProverScenario) -> None:
    start(scenario, versions=True)
    before = versions(scenario).latest("one").root
    refresh(scenario, "a second text")
    scenario.service.driver.checkpoint("w1")
    scenario.restart()
    assert versions(scenario).in_memory("one") == [1, 2]
    later(scenario, 140)
    scenario.restart()
    assert versions(scenario).in_memory("one") == [2]
    assert ask(scenario, "rolls").public.query.version == 2
    assert versions(scenario).get("one", 1).root == before


def test_only_versions_that_are_logged(scenario: ProverScenario) -> None:
    start(scenario, versions=True)
    with pytest.raises(InternalError, match="no version 2"):
        versions(scenario).get("one", 2)


# A window's charges take some bytes each when their budget is proven, not an object each.

FEW, MANY = 1000, 3000
CHARGED = 50  # rows of an entry
ROWS = 40_000
PLACE = 7  # between two entries of the log
PACKED = 500  # bytes of an entry at most: the entry's object alone has more than 1,300
LISTED = 60 + 10 * CHARGED  # bytes of its positions in a list; with an object each, 32 more of each
BODY = Charge(
    policy_digest=bytes(32),
    window="w1",
    tenant="one",
    version=3,
    rows=ROWS,
    filter_digest=bytes(32),
    pseudonym=bytes(32),
    epoch=1,
    slot=0,
    counter=0,
    activation=1,
    time=1,
    query_digest=bytes(32),
    embedding_digest=bytes(32),
    sketch_digest=bytes(32),
    number=0,
    threshold=0,
    charge=bytes(32),
    sums=(),
)


def rows_of(number: int) -> list[int]:
    return [(number * CHARGED + row) % ROWS for row in range(CHARGED)]


def insert_charges(store: Store, tenant: str, count: int) -> None:
    first = 0 if tenant == "one" else PLACE * MANY
    entries, charges = [], []
    for number in range(count):
        body = replace(BODY, tenant=tenant, number=number, charge=number.to_bytes(32))
        place = {"window": "w1", "position": first + PLACE * number}
        entries.append({**place, "kind": body.KIND, "salt": bytes(32), "body": body.encode()})
        charges.append(
            {
                **place,
                "tenant": tenant,
                "number": number,
                "account": tenant,
                "counter": number,
                "request": bytes(32),
                "time": 1,
                "openings": b"",
                "rows": np.array(sorted(rows_of(number)), "<u4").tobytes(),
                "blinding": number.to_bytes(32, "little"),
            }
        )
    with store.write() as connection:
        connection.execute(insert(tables.entry), entries)
        connection.execute(insert(tables.charge), charges)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(f"sqlite:///{tmp_path}/prover.db")) as made:
        with made.write() as connection:
            connection.execute(
                insert(tables.window).values(
                    name="w1",
                    number=1,
                    state="closed",
                    policy=b"",
                    embedder=b"",
                    log_seed=bytes(32),
                    noise_seed=bytes(32),
                    pseudonym_key=bytes(32),
                    stopped=False,
                    entries_sent=0,
                    handed_over=False,
                    generation=0,
                )
            )
        insert_charges(made, "one", MANY)
        insert_charges(made, "few", FEW)
        yield made


def read(store: Store, tenant: str) -> TenantCharges:
    with store.read() as connection:
        found = TenantCharges.read(connection, "w1", tenant)
    assert found is not None
    return found


def test_an_entry_is_packed(store: Store) -> None:
    few, many = (peak(partial(read, store, tenant)) for tenant in ("few", "one"))
    assert few / FEW > 4 * CHARGED  # its rows are there
    assert many - few < PACKED * (MANY - FEW)


def test_a_position_is_one_object(store: Store) -> None:
    few, many = (
        peak(partial(getattr, read(store, tenant).charged, "rows")) for tenant in ("few", "one")
    )
    assert many - few < LISTED * (MANY - FEW)


def test_what_is_packed_is_what_is_stored(store: Store) -> None:
    found = read(store, "one")
    assert found.version == 3
    assert found.positions.tolist() == [PLACE * number for number in range(MANY)]
    assert found.points == b"".join(number.to_bytes(32) for number in range(MANY))
    assert found.charged.rows == [sorted(rows_of(number)) for number in range(MANY)]
    blindings = [number.to_bytes(32, "little") for number in range(MANY)]
    assert found.charged.blindings.tobytes() == b"".join(blindings)
    with store.read() as connection:
        assert TenantCharges.read(connection, "w1", "nobody") is None
        among = charges_among(connection, "w1", (PLACE * (MANY + 2), 1, 0, PLACE * 5))
    assert among == [0, PLACE * 5, PLACE * (MANY + 2)]
    assert found.numbers([*among, 3 * PLACE + 1]) == [0, 5]
