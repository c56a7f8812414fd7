"""Both engines do the same to the bit."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit import core
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.verifier import engines
from ragaudit.verifier.engines import (
    ArgumentRejected,
    CoreEngine,
    Engine,
    ProvenSelection,
    ReferenceEngine,
    SelectionsRejected,
)

BOTH: list[Engine] = [CoreEngine(), ReferenceEngine()]
L = 2**252 + 27742317777372353535851937790883648493
scalars = st.integers(0, L - 1).map(lambda x: x.to_bytes(32, "little"))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-127, 127), min_size=5, max_size=9), scalars)
def test_rows_commit_alike(row: list[int], blinding: bytes) -> None:
    made = {engine.commit_row(row, blinding) for engine in BOTH}
    assert len(made) == 1


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, 2**32 - 1), max_size=6), scalars)
def test_selections_commit_alike(positions: set[int], blinding: bytes) -> None:
    made = {engine.commit_selection(sorted(positions), blinding) for engine in BOTH}
    assert len(made) == 1


@pytest.mark.parametrize("engine", BOTH)
def test_openings_outside_their_range_are_rejected(engine: engines.Engine) -> None:
    too_large = L.to_bytes(32, "little")
    for call in (
        lambda: engine.commit_row([1, 2, 3, 4, 5], too_large),
        lambda: engine.commit_row([1, 2, 3, 4, 5], b"short"),
        lambda: engine.commit_selection([1], too_large),
        lambda: engine.commit_selection([1, 1], bytes(32)),
        lambda: engine.commit_selection([-1], bytes(32)),
        lambda: engine.commit_selection([2**32], bytes(32)),
    ):
        with pytest.raises(ArgumentRejected):
            call()  # type: ignore[no-untyped-call]


def test_noise_and_sketches_are_alike() -> None:
    for sigma in ("0.001", "4"):
        drawn = [engine.sample_noise(sigma, b"k" * 32, 20) for engine in BOTH]
        assert np.array_equal(drawn[0], drawn[1])
        assert drawn[0].dtype == drawn[1].dtype == np.int64
    sketches = {engine.sketch([1, -2, 3], b"s" * 32, 64) for engine in BOTH}
    assert len(sketches) == 1


def proven(count: int) -> list[ProvenSelection]:
    generator = random.Random(5)
    vectors = np.array(
        [[generator.randrange(-40, 40) for _ in range(4)] for _ in range(6)], dtype=np.int8
    )
    rows = core.complete_rows(vectors)
    blindings = np.frombuffer(
        b"".join(generator.randbytes(31) + b"\0" for _ in range(6)), dtype=np.uint8
    ).reshape(6, 32)
    commitments = core.commit_rows(rows, blindings)
    made = []
    for number in range(count):
        query = np.array([30, number, -5, 2], dtype=np.int16)
        noise = np.array([generator.randrange(-50_000, 50_000) for _ in range(6)], dtype=np.int64)
        noised = vectors.astype(np.int64) @ query.astype(np.int64) + noise
        selected = sorted(int(i) for i in np.argsort(noised)[-2:])
        blinding = generator.randbytes(31) + b"\0"
        statement = SelectionStatement(
            context=generator.randbytes(32), rows=6, commitments=commitments, query=query,
            noise=noise, top_k=2, selection_commitment=core.commit_selection(selected, blinding),
        )  # fmt: skip
        proof = core.prove_selection(statement, rows, blindings, selected, blinding)
        made.append((statement, proof))
    return made


@pytest.mark.parametrize("engine", BOTH)
def test_a_batch_names_its_bad_members(engine: engines.Engine) -> None:
    good = proven(4)
    engine.verify_selections(good)
    engine.verify_selections([])
    swapped = [good[0], good[2], good[1], good[3]]
    bad = [(statement, proof) for (statement, _), (_, proof) in zip(good, swapped, strict=True)]
    with pytest.raises(SelectionsRejected) as caught:
        engine.verify_selections(bad)
    assert caught.value.failed == (1, 2)


def test_a_statement_that_is_no_statement_rejects_itself_only() -> None:
    good = proven(3)
    malformed = replace(good[1][0], selection_commitment=b"")
    for engine in BOTH:
        with pytest.raises(SelectionsRejected) as caught:
            engine.verify_selections([good[0], (malformed, good[1][1]), good[2]])
        assert caught.value.failed == (1,)


@pytest.mark.parametrize("change", [{"squared_norm": 16128}, {"keeps_ties": True}])
def test_a_selection_of_another_norm_or_argument_is_rejected(change: dict[str, Any]) -> None:
    statement, proof = proven(1)[0]
    for engine in (ReferenceEngine(), engines.engine("core")):
        with pytest.raises(SelectionsRejected):
            engine.verify_selections([(replace(statement, **change), proof)])


def test_engines_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines.engine("core").name == "core"
    assert engines.engine("reference").name == "reference"
    assert engines.fastest_engine().name == "core"
    with pytest.raises(UnsupportedError, match="no engine"):
        engines.engine("fast")
    monkeypatch.setitem(sys.modules, "ragaudit.core", None)
    engines.engine.cache_clear()
    assert engines.fastest_engine().name == "reference"
    with pytest.raises(UnsupportedError, match="not installed"):
        engines.engine("core")
    engines.engine.cache_clear()
