"""What the procedure computes with: an engine, and the committed embedder where it is installed.

Two engines check proofs and redraw noise, compiled and plain Python; both do the same to the bit.
The compiled one (`ragaudit.core`) is imported only when it is asked for; without it the verifier
works on the reference. The embedder is an optional part of the verifier.
"""

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.noise import table_for
from ragaudit.circuits.sketch import sketch
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.encoding.errors import (
    MalformedError,
    RagauditError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.items import EMBEDDER
from ragaudit.verifier.evidence import Evidence

_log = logging.getLogger(__name__)

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
        """Check an index argument (spec 4.7).

        Args:
            proof: as the provider sent it.

        Raises:
            ArgumentRejected: it does not establish the statement.
        """

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        """Check selection arguments (spec 4.6), together where that is faster.

        Raises:
            SelectionsRejected: names the positions of those that do not hold.
        """

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        """Return z_0 .. z_(count-1), int64 (spec 3).

        Args:
            sigma: of the policy, a decimal.
            key: of the record, 32 bytes.
            count: N, at least 1.
        """

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a completed row (spec 4.1.5), 32 bytes.

        Args:
            row: d + 4 integers.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            ArgumentRejected: no such row or scalar.
        """

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a set of positions (spec 4.1.5), 32 bytes.

        Args:
            positions: rising, from 0.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            ArgumentRejected: no such positions or scalar.
        """

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of an embedding (spec 2.4), bits / 8 bytes.

        Args:
            query: d integers that fit into 16 bits.
            seed: of the policy's estimator, 32 bytes.
            bits: a multiple of 8.
        """


class CommittedEmbedder(Protocol):
    """The committed embedder, where it is at hand."""

    @property
    def digest(self) -> bytes:
        """C_emb of the artefacts that it runs."""

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """Return the quantised embedding of a text, int8[d].

        Raises:
            RagauditError: the text has none.
        """


class _Sketching:
    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of an embedding (spec 2.4), bits / 8 bytes."""
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
        """Check an index argument (spec 4.7); ArgumentRejected."""
        self._judge(lambda: self._core.verify_index(statement, proof))

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        """Check selection arguments (spec 4.6) as one batch; SelectionsRejected."""
        try:
            self._core.verify_selections(proven)
        except self._core.ProofRejected as error:
            raise SelectionsRejected(error.failed) from None
        except self._core.CoreError:
            # Not a rejection of proofs but of the call: one malformed input stops the batch.
            failed = [i for i, pair in enumerate(proven) if not self._accepts(*pair)]
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
        """Return z_0 .. z_(count-1), int64 (spec 3)."""
        noise_table = table_for(sigma)
        parameters = noise_table.parameters
        noise: Noise = self._core.sample_noise(
            noise_table.thresholds, parameters.factor, parameters.levels, key, count
        )
        return noise

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a completed row (spec 4.1.5), 32 bytes."""
        # No entry beyond int8 gets here: the row's squared norm is B² = 127² (5.9, step 8).
        rows = np.array([row], dtype=np.int8)
        blindings = np.frombuffer(blinding, dtype=np.uint8).reshape(1, -1)
        return bytes(self._judge(lambda: self._core.commit_rows(rows, blindings)))

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a set of positions (spec 4.1.5), 32 bytes."""
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
        """Check an index argument (spec 4.7); ArgumentRejected."""
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
        """Check selection arguments (spec 4.6) one by one; SelectionsRejected."""
        failed = [i for i, pair in enumerate(proven) if not self._accepts(*pair)]
        if failed:
            raise SelectionsRejected(failed)

    def _accepts(self, statement: SelectionStatement, proof: bytes) -> bool:
        from ragaudit.verifier import reference  # noqa: PLC0415

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
                statement.squared_norm,
                statement.keeps_ties,
            )
        except reference.ReferenceVerifierError:
            return False
        return True

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        """Return z_0 .. z_(count-1), int64 (spec 3)."""
        from ragaudit.verifier import reference  # noqa: PLC0415

        return np.array(reference.sample_noise(sigma, key, count), dtype=np.int64)

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a completed row (spec 4.1.5), 32 bytes."""
        from ragaudit.verifier.reference import commitments  # noqa: PLC0415

        return _reference_judge(lambda: commitments.commit_row(row, blinding))

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a set of positions (spec 4.1.5), 32 bytes."""
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
    """Return the engine called ``name``.

    Args:
        name: "core", "reference", or "auto" for the faster one that is installed.

    Raises:
        UnsupportedError: another name, or an engine that is not installed.
    """
    if name == "auto":
        return fastest_engine()
    if name == CoreEngine.name:
        return CoreEngine()
    if name == ReferenceEngine.name:
        return ReferenceEngine()
    raise UnsupportedError(f"no engine {name!r}", expected="core or reference")


def fastest_engine() -> Engine:
    """Return the compiled engine where it is installed, otherwise the reference."""
    return engine("core" if find_spec("ragaudit.core") is not None else "reference")


def write_positions(path: Path) -> None:
    """Write the generators of positions that `use_positions` reads: 32 MiB, a minute of work.

    Args:
        path: the file, which is replaced where it exists.

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

    Args:
        path: as `write_positions` wrote it.

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


class InstalledEmbedder:
    """An installed embedder as the procedure uses it."""

    def __init__(self, embedder: Any, embed_quantised: Callable[..., npt.NDArray[np.int8]]) -> None:
        self._embedder = embedder
        self._embed = embed_quantised
        self._digest: bytes = embedder.manifest().digest()

    @property
    def digest(self) -> bytes:
        """C_emb of the files that it runs."""
        return self._digest

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """Return the quantised embedding of a text, int8[d]; RagauditError if it has none."""
        vector: npt.NDArray[np.int8] = self._embed(self._embedder, [text])[0]
        return vector


def committed_embedder(evidence: Evidence) -> CommittedEmbedder | None:
    """Return the embedder that the evidence names, None where it is not installed.

    Whether it is the committed one is check 18's, which compares C_emb.
    """
    try:
        return _installed(EmbedderManifest.parse(evidence[EMBEDDER]).name)
    except (ImportError, KeyError, RagauditError) as error:
        _log.warning("the committed embedder is not at hand: %s", error)
        return None


@lru_cache(maxsize=2)  # loading takes a second, and leaves tens of megabytes in pieces
def _installed(name: str) -> InstalledEmbedder:
    registry = import_module("ragaudit.embedders.registry")
    base = import_module("ragaudit.embedders.base")
    return InstalledEmbedder(registry.load(name), base.embed_quantised)
