"""Two engines that check proofs and redraw noise: compiled, and plain Python.

Both do the same to the bit. The compiled one (`ragaudit.core`) is imported only when it is asked
for; without it the verifier works on the reference.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.noise import table_for
from ragaudit.circuits.parameters import SQUARED_NORM
from ragaudit.circuits.sketch import sketch
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.encoding.errors import (
    MalformedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)

Noise = npt.NDArray[np.int64]


class ArgumentRejected(RejectedError):
    """An index or selection argument does not establish its statement."""


class SelectionsRejected(ArgumentRejected):
    """Some of several selection arguments were rejected; ``failed`` are their positions."""

    def __init__(self, failed: Sequence[int]) -> None:
        super().__init__(f"{len(failed)} selection arguments rejected")
        self.failed = tuple(failed)


ProvenSelection = tuple[SelectionStatement, bytes]
"""A selection statement with its argument."""


class Engine(Protocol):
    """What the procedure needs beside hashing; every method raises ArgumentRejected on "no"."""

    name: str

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        """Check an index argument."""

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        """Check selection arguments; SelectionsRejected names the bad ones."""

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        """z_0 .. z_(count-1) under a 32-byte key (spec 3)."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Commitment to a completed row, d + 4 integers, under a canonical scalar."""

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Commitment to a set of positions under a canonical scalar."""

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """The sketch of an embedding (spec 2.4)."""


class _Sketching:
    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        return sketch(np.array(query, dtype=np.int16), seed, bits)


class CoreEngine(_Sketching):
    """The compiled implementation.

    Raises:
        UnsupportedError: `ragaudit.core` is not installed.
    """

    name = "core"

    def __init__(self) -> None:
        if find_spec("ragaudit.core") is None:
            raise UnsupportedError(
                "ragaudit.core is not installed", expected="the reference engine, or the core wheel"
            )
        from ragaudit import core  # noqa: PLC0415 - absent where only the reference is installed

        self._core: Any = core

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        self._judge(lambda: self._core.verify_index(statement, proof))

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        try:
            self._core.verify_selections(proven)
        except self._core.ProofRejected as error:
            raise SelectionsRejected(error.failed) from None
        except self._core.CoreError:
            # Not a rejection of proofs but of the call: one malformed input stops the batch.
            failed = [i for i, each in enumerate(proven) if not self._accepts(*each)]
            if not failed:
                raise
            raise SelectionsRejected(failed) from None

    def _accepts(self, statement: SelectionStatement, proof: bytes) -> bool:
        try:
            self._core.verify_selection(statement, proof)
        except self._core.CoreError:
            return False
        return True

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        noise_table = table_for(sigma)
        parameters = noise_table.parameters
        drawn: Noise = self._core.sample_noise(
            noise_table.thresholds, parameters.factor, parameters.levels, key, count
        )
        return drawn

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        rows = np.array([row], dtype=np.int8)
        blindings = np.frombuffer(blinding, dtype=np.uint8).reshape(1, -1)
        return bytes(self._judge(lambda: self._core.commit_rows(rows, blindings)))

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        return bytes(self._judge(lambda: self._core.commit_selection(list(positions), blinding)))

    def _judge(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._core.CoreError as error:
            raise ArgumentRejected(str(error)) from error


class ReferenceEngine(_Sketching):
    """The plain Python implementation: no compiled code of ours, slow."""

    name = "reference"

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        from ragaudit.verifier import reference  # noqa: PLC0415 - generators cost start-up time

        try:
            reference.verify_index(
                statement.context,
                statement.rows,
                statement.dimension,
                statement.commitments,
                proof,
                statement.squared_norm,
            )
        except reference.ReferenceVerifierError as error:
            raise ArgumentRejected(str(error)) from error

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        failed = [i for i, each in enumerate(proven) if not self._accepts(*each)]
        if failed:
            raise SelectionsRejected(failed)

    def _accepts(self, statement: SelectionStatement, proof: bytes) -> bool:
        from ragaudit.verifier import reference  # noqa: PLC0415

        if statement.squared_norm != SQUARED_NORM:
            raise UnsupportedError(
                f"a selection with B² = {statement.squared_norm}", expected=f"{SQUARED_NORM}"
            )
        try:
            reference.verify_selection(
                statement.context,
                statement.rows,
                statement.commitments,
                statement.query.tolist(),
                statement.noise.tolist(),
                statement.top_k,
                statement.selection_commitment,
                proof,
                statement.allowed,
            )
        except reference.ReferenceVerifierError:
            return False
        return True

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        from ragaudit.verifier import reference  # noqa: PLC0415

        return np.array(reference.sample_noise(sigma, key, count), dtype=np.int64)

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        from ragaudit.verifier.reference import commitments  # noqa: PLC0415

        return _reference_judge(lambda: commitments.commit_row(row, blinding))

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        from ragaudit.verifier.reference import commitments  # noqa: PLC0415

        return _reference_judge(lambda: commitments.commit_selection(positions, blinding))


def _reference_judge(call: Callable[[], bytes]) -> bytes:
    from ragaudit.verifier import reference  # noqa: PLC0415

    try:
        return call()
    except reference.ReferenceVerifierError as error:
        raise ArgumentRejected(str(error)) from error


@lru_cache(maxsize=2)
def engine(name: str) -> Engine:
    """The engine called ``name``: "core" or "reference".

    Raises:
        UnsupportedError: another name, or an engine that is not installed.
    """
    if name == CoreEngine.name:
        return CoreEngine()
    if name == ReferenceEngine.name:
        return ReferenceEngine()
    raise UnsupportedError(f"no engine {name!r}", expected="core or reference")


def fastest_engine() -> Engine:
    """The compiled engine where it is installed, otherwise the reference."""
    return engine("core" if find_spec("ragaudit.core") is not None else "reference")


def write_positions(path: Path) -> None:
    """Write the generators of positions that `use_positions` reads: 32 MiB, a minute of work.

    Raises:
        UnsupportedError: without the compiled core.
        UnavailableError: the file cannot be written.
    """
    core = _compiled()
    try:
        path.write_bytes(core.position_encodings())
    except OSError as error:
        raise UnavailableError(f"cannot write: {error.strerror}", where=str(path)) from error


def use_positions(path: Path) -> None:
    """Let the compiled engine decode the generators of positions from a file.

    They are constants with a known digest: a wrong file is refused, whoever wrote it.

    Raises:
        UnsupportedError: without the compiled core.
        MalformedError: the file cannot be read, or is not the one.
    """
    core = _compiled()
    try:
        core.use_positions(path.read_bytes())
    except OSError as error:
        raise MalformedError(f"cannot read: {error.strerror}", where=str(path)) from error
    except core.MalformedInput as error:
        raise MalformedError(str(error), where=str(path)) from error


def _compiled() -> Any:
    if find_spec("ragaudit.core") is None:
        raise UnsupportedError("positions are kept by the compiled core, which is not installed")
    return import_module("ragaudit.core")
