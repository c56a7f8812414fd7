"""Two engines that check proofs and redraw noise: compiled, and plain Python.

Both do the same to the bit. The compiled one (`ragaudit.core`) is imported only when it is asked
for; without it the verifier works on the reference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.noise import table_for
from ragaudit.circuits.sketch import sketch
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


@dataclass(frozen=True, slots=True)
class SelectionInstance:
    """One selection statement and its argument.

    Attributes:
        context: 32 bytes.
        rows: N.
        commitments: 32·N bytes.
        query: int16[d].
        noise: int64[N].
        top_k: K.
        selection_commitment: 32 bytes.
    """

    context: bytes
    rows: int
    commitments: bytes = field(repr=False)
    query: npt.NDArray[np.int16] = field(repr=False)
    noise: Noise = field(repr=False)
    top_k: int
    selection_commitment: bytes
    proof: bytes = field(repr=False)


class Engine(Protocol):
    """What the procedure needs beside hashing; every method raises ArgumentRejected on "no"."""

    name: str

    def verify_index(
        self, context: bytes, rows: int, dimension: int, commitments: bytes, proof: bytes
    ) -> None:
        """Check an index argument."""

    def verify_selections(self, instances: Sequence[SelectionInstance]) -> None:
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

    def verify_index(
        self, context: bytes, rows: int, dimension: int, commitments: bytes, proof: bytes
    ) -> None:
        self._judge(lambda: self._core.verify_index(context, rows, dimension, commitments, proof))

    def verify_selections(self, instances: Sequence[SelectionInstance]) -> None:
        arguments = [_arguments(each) for each in instances]
        try:
            self._core.verify_selections(arguments)
        except self._core.ProofRejected as error:
            raise SelectionsRejected(error.failed) from None
        except self._core.CoreError:
            # Not a rejection of proofs but of the call: one malformed input stops the batch.
            failed = [i for i, each in enumerate(instances) if not self._accepts(each)]
            if not failed:
                raise
            raise SelectionsRejected(failed) from None

    def _accepts(self, instance: SelectionInstance) -> bool:
        try:
            self._core.verify_selection(*_arguments(instance))
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


def _arguments(instance: SelectionInstance) -> tuple[Any, ...]:
    return (
        instance.context,
        instance.rows,
        instance.commitments,
        instance.query,
        instance.noise,
        instance.top_k,
        instance.selection_commitment,
        instance.proof,
    )


class ReferenceEngine(_Sketching):
    """The plain Python implementation: no compiled code of ours, slow."""

    name = "reference"

    def verify_index(
        self, context: bytes, rows: int, dimension: int, commitments: bytes, proof: bytes
    ) -> None:
        from ragaudit.verifier import reference  # noqa: PLC0415 - generators cost start-up time

        try:
            reference.verify_index(context, rows, dimension, commitments, proof)
        except reference.ReferenceVerifierError as error:
            raise ArgumentRejected(str(error)) from error

    def verify_selections(self, instances: Sequence[SelectionInstance]) -> None:
        from ragaudit.verifier import reference  # noqa: PLC0415

        failed = []
        for position, each in enumerate(instances):
            try:
                reference.verify_selection(
                    each.context,
                    each.rows,
                    each.commitments,
                    each.query.tolist(),
                    each.noise.tolist(),
                    each.top_k,
                    each.selection_commitment,
                    each.proof,
                )
            except reference.ReferenceVerifierError:
                failed.append(position)
        if failed:
            raise SelectionsRejected(failed)

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
