"""What the procedure computes with: an engine, which checks statements with their arguments.

Two engines check proofs, redraw noise and join accounts, compiled and plain Python; both do the
same to the bit. The compiled one (`ragaudit.core`) is imported only when it is asked for; without
it the verifier works on the reference. Its generators of positions, constants that take long, may
be kept in a file.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.budgets import BudgetStatement, ChargeStatement
from ragaudit.circuits.noise import table_for
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.circuits.vector_operations import VectorOperations
from ragaudit.encoding.errors import (
    MalformedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.ledger.messages import beacon
from ragaudit.ledger.messages.receipt_check import GroupOperations
from ragaudit.ledger.messages.ties import TiesStatement
from ragaudit.privacy import coalition
from ragaudit.privacy.coalition import Link


class ArgumentRejected(RejectedError):
    """An index or selection argument does not establish its statement."""


class SelectionsRejected(ArgumentRejected):
    """Some of several selection arguments were rejected; ``failed`` are their positions."""

    def __init__(self, failed: Sequence[int]) -> None:
        super().__init__(f"{len(failed)} selection arguments rejected")
        self.failed = tuple(failed)


class ChargesRejected(ArgumentRejected):
    """Some of several charge arguments were rejected; ``reasons`` has why, by position."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


ProvenSelection = tuple[SelectionStatement, bytes]
"""A selection statement with its argument."""

ProvenCharges = tuple[ChargeStatement, bytes]
"""What is stated of a group of charge entries, with its argument."""


def check_each(
    proven: Sequence[ProvenCharges], check: Callable[[ChargeStatement, bytes], None]
) -> None:
    """Check groups of charge entries one by one; ChargesRejected.

    Args:
        check: raises ArgumentRejected.
    """
    reasons: dict[int, str] = {}
    for position, (statement, proof) in enumerate(proven):
        try:
            check(statement, proof)
        except ArgumentRejected as error:
            reasons[position] = str(error)
    if reasons:
        raise ChargesRejected(reasons)


Noise = npt.NDArray[np.int64]


class Engine(GroupOperations, Protocol):
    """What the procedure needs beside hashing; every method raises ArgumentRejected on "no".

    Attributes:
        batch_records: how many selection arguments it gains by checking together, at most.
    """

    name: str
    batch_records: int

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        """Check an index argument as the provider sent it (spec 4.7).

        Raises:
            ArgumentRejected: it does not establish the statement.
        """

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        """Check selection arguments (spec 4.6), together where that is faster.

        Raises:
            SelectionsRejected: names those that do not hold.
        """

    def verify_budget(self, statement: BudgetStatement, proof: bytes) -> None:
        """Check the budget argument over all charge entries of a tenant (spec 4.10).

        Raises:
            ArgumentRejected: it does not establish the statement.
        """

    def verify_charges(self, proven: Sequence[ProvenCharges]) -> None:
        """Check charge arguments, each of a group of charge entries (spec 4.11).

        Raises:
            ChargesRejected: names those that do not hold.
        """

    def running_sums(self, points: bytes, numbers: Sequence[int]) -> list[bytes]:
        """Return the sum of the points before each place, 32 bytes each (spec 4.11).

        Args:
            points: 32 bytes each.
            numbers: rising places among them.

        Raises:
            ArgumentRejected: bytes that are no point.
        """

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        """Return z_0 .. z_(count-1), int64 (spec 3).

        Args:
            sigma: of the policy, a decimal.
            key: of the record, 32 bytes.
            count: N, at least 1.
        """

    @property
    def link_accounts(self) -> Link:
        """What joins the accounts of a coalition (spec 7.2)."""

    def is_round(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        """Return whether a beacon's signature verifies (spec 6.13).

        Args:
            public_key: of the chain, 96 bytes.
            message: 32 bytes, of the round.
            signature: 48 bytes.

        Raises:
            ValueError: bytes that are no points of the groups.
        """


class CoreEngine(VectorOperations):
    """The compiled implementation.

    Raises:
        UnsupportedError: `ragaudit.core` is not installed.
    """

    name = "core"
    batch_records = 128

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

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        """Check a ties opening (spec 4.6.10); ArgumentRejected."""
        self._judge(lambda: self._core.verify_ties(statement, proof))

    def verify_budget(self, statement: BudgetStatement, proof: bytes) -> None:
        """Check a budget argument (spec 4.10); ArgumentRejected."""
        self._judge(lambda: self._core.verify_budget(statement, proof))

    def verify_charges(self, proven: Sequence[ProvenCharges]) -> None:
        """Check charge arguments (spec 4.11) one by one; ChargesRejected."""
        check_each(proven, lambda *pair: self._judge(lambda: self._core.verify_charges(*pair)))

    def running_sums(self, points: bytes, numbers: Sequence[int]) -> list[bytes]:
        """Return the sum of the points before each place (spec 4.11); ArgumentRejected."""
        sums: list[bytes] = self._judge(lambda: self._core.running_sums(points, list(numbers)))
        return sums

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        """Return z_0 .. z_(count-1), int64 (spec 3)."""
        noise_table = table_for(sigma)
        parameters = noise_table.parameters
        noise: Noise = self._core.sample_noise(
            noise_table.thresholds, parameters.factor, parameters.levels, key, count
        )
        return noise

    @property
    def link_accounts(self) -> Link:
        """What joins the accounts of a coalition (spec 7.2)."""
        link: Link = self._core.link_accounts
        return link

    def is_round(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        """Return whether a beacon's signature verifies (spec 6.13); ValueError."""
        try:
            compiled = beacon.fastest()
        except UnsupportedError:
            # Slower, and there: a verdict never depends on what else is installed.
            return engine(ReferenceEngine.name).is_round(public_key, message, signature)
        return compiled(public_key, message, signature)

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a completed row (spec 4.1.5), 32 bytes."""
        # No entry beyond int16 gets here: the row's squared norm is B² (5.9, step 8).
        rows = np.array([row], dtype=np.int16)
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


class ReferenceEngine(VectorOperations):
    """The plain Python implementation: no compiled code of ours, slow."""

    name = "reference"
    batch_records = 128

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        """Check an index argument (spec 4.7); ArgumentRejected."""
        from ragaudit.verifier import reference  # noqa: PLC0415 - generators cost start-up time

        _reference_judge(
            lambda: reference.verify_index(
                statement.context,
                statement.rows,
                statement.dimension,
                statement.commitments,
                proof,
                statement.squared_norm,
            )
        )

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

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        """Check a ties opening (spec 4.6.10); ArgumentRejected."""
        from ragaudit.verifier import reference  # noqa: PLC0415

        _reference_judge(lambda: reference.verify_ties(statement, proof))

    def verify_budget(self, statement: BudgetStatement, proof: bytes) -> None:
        """Check a budget argument (spec 4.10); ArgumentRejected."""
        from ragaudit.verifier import reference  # noqa: PLC0415

        charges = statement.charges
        _reference_judge(
            lambda: reference.verify_budget(
                statement.context,
                statement.rows,
                statement.uses,
                [charges[at : at + 32] for at in range(0, len(charges), 32)],
                proof,
                statement.squared_norm,
            )
        )

    def verify_charges(self, proven: Sequence[ProvenCharges]) -> None:
        """Check charge arguments (spec 4.11) one by one; ChargesRejected."""
        check_each(proven, self._verify_group)

    def _verify_group(self, statement: ChargeStatement, proof: bytes) -> None:
        from ragaudit.verifier import reference  # noqa: PLC0415

        _reference_judge(
            lambda: reference.verify_charge(
                statement.uses,
                statement.commitments,
                [
                    reference.ChargeEntry(
                        entry.context,
                        entry.query.tolist(),
                        entry.threshold,
                        entry.allowed,
                        entry.charged_before,
                        entry.charge,
                    )
                    for entry in statement.entries
                ],
                proof,
                statement.squared_norm,
            )
        )

    def running_sums(self, points: bytes, numbers: Sequence[int]) -> list[bytes]:
        """Return the sum of the points before each place (spec 4.11); ArgumentRejected."""
        from ragaudit.verifier.reference import charge  # noqa: PLC0415

        sums: list[bytes] = _reference_judge(lambda: charge.running_sums(points, numbers))
        return sums

    def sample_noise(self, sigma: str, key: bytes, count: int) -> Noise:
        """Return z_0 .. z_(count-1), int64 (spec 3)."""
        from ragaudit.verifier import reference  # noqa: PLC0415

        return np.array(reference.sample_noise(sigma, key, count), dtype=np.int64)

    @property
    def link_accounts(self) -> Link:
        """What joins the accounts of a coalition (spec 7.2)."""
        return coalition.link_accounts

    def is_round(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        """Return whether a beacon's signature verifies (spec 6.13); ValueError."""
        from ragaudit.verifier import reference  # noqa: PLC0415

        try:
            reference.verify_round(public_key, message, signature)
        except reference.MalformedProof as error:
            raise ValueError(str(error)) from error
        except reference.ProofRejected:
            return False
        return True

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a completed row (spec 4.1.5), 32 bytes."""
        from ragaudit.verifier.reference import commitments  # noqa: PLC0415

        return bytes(_reference_judge(lambda: commitments.commit_row(row, blinding)))

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a set of positions (spec 4.1.5), 32 bytes."""
        from ragaudit.verifier.reference import commitments  # noqa: PLC0415

        return bytes(_reference_judge(lambda: commitments.commit_selection(positions, blinding)))


def _reference_judge(call: Callable[[], Any]) -> Any:
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
