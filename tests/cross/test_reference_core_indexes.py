"""The core, the reference code and the circuits decide indexes, points and noise alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ragaudit.core as core
import ragaudit.verifier.reference as reference
from both_verifiers import Case, core_accepts, reference_accepts
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.circuits import noise as circuits_noise
from ragaudit.circuits.quantise import IntegerRows, row_type
from ragaudit.circuits.statements import IndexStatement
from ragaudit.lab.attacks.forging.index_prover import commit_field_rows
from ragaudit.verifier.reference import noise as reference_noise
from ragaudit.verifier.reference import ristretto
from ragaudit.verifier.reference.generators import generator
from ragaudit.verifier.reference.noise import build_sampler
from ragaudit.verifier.reference.ristretto import encode
from reference_vectors import cases, index_arguments, index_forgeries, read

LISTS = ["H", "Q", "G", "A", "sel/A*", "sel/M", "sel/R", "idx/P", "idx/P*", "idx/M", "idx/R"]


def decoded_by(encoding: bytes) -> tuple[bool, bool]:
    """Whether (core, reference) decode 32 bytes as a point."""
    zero = np.zeros((1, 32), dtype=np.uint8)
    decisions = []
    for decode, error in (
        (lambda: core.reblind_rows(encoding, zero, zero), core.MalformedInput),
        (lambda: ristretto.encode(ristretto.decode(encoding)), reference.MalformedProof),
    ):
        try:
            assert decode() == encoding  # type: ignore[no-untyped-call]
            decisions.append(True)
        except error:
            decisions.append(False)
    return decisions[0], decisions[1]


def test_points_are_decoded_alike() -> None:
    """The encodings of RFC 9496, and every other spelling of the valid ones."""
    p = ristretto.P
    for valid in map(bytes.fromhex, read("rfc9496")["multiples"]):
        assert decoded_by(valid) == (True, True)
        s = int.from_bytes(valid, "little")
        for other in {s + 2**255, p - s, p - s + 2**255, s + p} - {s}:
            if other < 2**256:
                assert decoded_by(other.to_bytes(32, "little")) == (False, False), hex(other)
    for refused in read("rfc9496")["refused"].values():
        for encoding in map(bytes.fromhex, refused):
            assert decoded_by(encoding) == (False, False), encoding.hex()


def index_decisions(
    context: bytes,
    rows: int,
    dimension: int,
    commitments: bytes,
    proof: bytes,
    squared_norm: int = 127**2,
) -> tuple[bool, bool]:
    """(core accepts, reference accepts)."""
    statement = IndexStatement(context, rows, dimension, commitments, squared_norm)
    decisions = []
    stated = (context, rows, dimension, commitments)
    ways: tuple[tuple[Callable[[], None], type[Exception]], ...] = (
        (lambda: core.verify_index(statement, proof), core.CoreError),
        (lambda: reference.verify_index(*stated, proof, squared_norm), reference.ProofRejected),
    )
    for verify, error in ways:
        try:
            verify()
            decisions.append(True)
        except error:
            decisions.append(False)
    return decisions[0], decisions[1]


@pytest.mark.parametrize(
    "vector",
    [*cases("index_v2"), *cases("index_noncanonical"), *index_forgeries()],
    ids=lambda v: v["name"],
)
def test_core_decides_the_index_vectors(vector: dict[str, Any]) -> None:
    expected = vector["expect"] == "accept"
    assert index_decisions(*index_arguments(vector)) == (expected, expected)


@settings(max_examples=2, deadline=None)
@given(
    st.sampled_from([127, 4095]),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.data(),
)
def test_indexes_are_decided_alike(
    bound: int, N: int, d: int, seed: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    reach, B2 = int((bound**2 / d) ** 0.5), bound**2
    vectors: IntegerRows = rng.integers(-reach, reach, (N, d), endpoint=True).astype(
        row_type(bound)
    )
    rows = core.complete_rows(vectors, B2)
    blindings = core.random_scalars(N)
    commitments = core.commit_rows(rows, blindings)
    context = rng.bytes(32)
    proof = core.prove_index(IndexStatement(context, N, d, commitments, B2), rows, blindings)
    assert index_decisions(context, N, d, commitments, proof, B2) == (True, True)
    changed = bytearray(proof)
    changed[data.draw(st.integers(0, len(proof) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for arguments in (
        (context, N, d, commitments, bytes(changed)),
        (context, N, d + 1, commitments, proof),
        (context, N + 1, d, commitments, proof),
        (bytes(32), N, d, commitments, proof),
        (context, N, d, commitments, proof[:-32]),
        (context, N, d, commitments, proof + bytes(32)),
    ):
        assert index_decisions(*arguments, B2) == (False, False)
    assert index_decisions(context, N, d, commitments, proof, B2 - 1) == (False, False)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [927, 928, 1023, 1024])
def test_large_indexes_are_decided_alike(rows: int) -> None:
    """R = 927 range rows; one more variable from 1024 rows on."""
    vectors = np.random.default_rng(rows).integers(-90, 91, (rows, 1)).astype(np.int8)
    completed, blindings = core.complete_rows(vectors), core.random_scalars(rows)
    commitments = core.commit_rows(completed, blindings)
    statement = IndexStatement(bytes(32), rows, 1, commitments)
    proof = core.prove_index(statement, completed, blindings)
    assert index_decisions(bytes(32), rows, 1, commitments, proof) == (True, True)
    changed = proof[:-32] + bytes(32)
    assert index_decisions(bytes(32), rows, 1, commitments, changed) == (False, False)


@pytest.mark.parametrize("row", [[1270, 0, 0, 0, 0], [126, 0, 0, 0, 0], [2**44, 1, 0, 0, 0]])
def test_rows_of_another_norm_are_rejected_by_both(row: list[int]) -> None:
    rows = np.array([row], dtype=np.int64)
    blindings = core.random_scalars(1)
    blinding = int.from_bytes(bytes(blindings[0]), "little")
    commitments = commit_field_rows(reference, [row], [blinding])
    proof = core.prove_index(IndexStatement(bytes(32), 1, 1, commitments), rows, blindings)
    assert index_decisions(bytes(32), 1, 1, commitments, proof) == (False, False)


def test_dimension_zero_is_refused_by_both() -> None:
    """Rows that are nothing but their completion, honestly proven: spec 4.1.2 asks for d >= 1."""
    rows = np.array([[127, 0, 0, 0], [0, 127, 0, 0]], dtype=np.int8)
    blindings = core.random_scalars(2)
    commitments = core.commit_rows(rows, blindings)
    try:
        proof = core.prove_index(IndexStatement(bytes(32), 2, 0, commitments), rows, blindings)
    except core.CoreError:
        proof = bytes(2848)
    assert index_decisions(bytes(32), 2, 0, commitments, proof) == (False, False)
    case = Case(bytes(32), commitments, (), (5, 0), 1, bytes(32), bytes(1984), None)
    assert not core_accepts(case)
    assert not reference_accepts(case)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(LISTS), st.integers(0, 2**40))
def test_generators_agree(name: str, index: int) -> None:
    index = 0 if name in {"H", "Q", "sel/A*", "idx/P*"} else index
    assert core.generator(name, index) == encode(generator(name, index))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["0.001", "0.0317", "0.0318", "0.25", "1", "10", "50", "30000000"]),
    st.binary(min_size=32, max_size=32),
    st.integers(0, 200),
)
def test_noise_agrees_in_all_three(sigma: str, key: bytes, count: int) -> None:
    expected = reference.sample_noise(sigma, key, count)
    sampler = build_sampler(sigma)
    thresholds = b"".join(value.to_bytes(16, "little") for value in sampler.thresholds)
    sampled = core.sample_noise(thresholds, sampler.factor, sampler.levels, key, count)
    assert sampled.tolist() == expected
    table = circuits_noise.table(circuits_noise.NoiseParameters.for_sigma(sigma))
    assert circuits_noise.sample_noise(table, key, count).tolist() == expected


VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "noise.json").read_text())
NAMED_BY_SIGMA = [t for t in VECTORS["tables"] if "=" not in t["name"]]
sigmas = st.decimals("0.001", "2000", places=4).map(lambda d: f"{d:f}") | st.sampled_from(
    ["0.001", "0.25", "1", "10", "50", "0.0318", "0.0317", "30000000"]
)


def table_bytes(sigma: str) -> bytes:
    thresholds = reference_noise.build_sampler(sigma).thresholds
    return b"".join(value.to_bytes(16, "little") for value in thresholds)


@pytest.mark.parametrize("vector", NAMED_BY_SIGMA, ids=lambda v: v["name"])
def test_shared_vectors(vector: dict[str, Any]) -> None:
    sigma = vector["name"]
    sampler = reference_noise.build_sampler(sigma)
    assert (sampler.levels, sampler.factor) == (vector["levels"], vector["factor"])
    assert sampler.half_width == vector["half_width"]
    assert hashlib.sha256(table_bytes(sigma)).hexdigest() == vector["thresholds_sha256"]
    key = bytes.fromhex(vector["key"])
    samples = reference_noise.sample_noise(sigma, key, 1000)
    assert samples[: len(vector["first_samples"])] == vector["first_samples"]
    encoded = b"".join(z.to_bytes(8, "little", signed=True) for z in samples)
    assert hashlib.sha256(encoded).hexdigest() == vector["samples_1000_sha256"]


def test_the_vectors_name_sigmas() -> None:
    assert len(NAMED_BY_SIGMA) >= 4


@settings(max_examples=25, deadline=None)
@given(sigmas, st.binary(min_size=32, max_size=32), st.integers(0, 60))
def test_reference_and_circuits_agree(sigma: str, key: bytes, count: int) -> None:
    parameters = circuits_noise.NoiseParameters.for_sigma(sigma)
    sampler = reference_noise.build_sampler(sigma)
    assert (parameters.levels, parameters.factor) == (sampler.levels, sampler.factor)
    assert parameters.sigma_units == Fraction(sigma) * 127**2
    table = circuits_noise.table(parameters)
    assert bytes(table.thresholds) == table_bytes(sigma)
    assert list(circuits_noise.sample_noise(table, key, count)) == reference_noise.sample_noise(
        sigma, key, count
    )
