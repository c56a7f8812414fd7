"""A window's charges take some bytes each when their budget is proven, not an object each."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from memory_taken import peak
from ragaudit.ledger.messages.entries import Charge
from ragaudit.prover.lifecycle.evidence import TenantCharges, charges_among
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from sqlalchemy import insert

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
