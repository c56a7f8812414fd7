"""Log entries of the generation channel (docs/spec/11-generation.md §11.9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import ClassVar, Self

from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.tagged import (
    Field,
    read_int,
    read_optional_digest,
    read_optional_int,
    read_text,
)
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.adaptive_terms import MAX_BINS
from ragaudit.ledger.messages.encoded import EntryBody, Readers, check_digests, check_range
from ragaudit.ledger.messages.identifiers import check_tenant, check_window
from ragaudit.ledger.messages.kernel import MAX_TIME

_MAX_ROWS = 2**40
_MAX_SLOTS = 1_000_000
_MAX_QUERIES = 1_000_000
MAX_CHARGES = 2**32 - 1
"""R, charge entries of one tenant and window (4.10)."""

_LARGEST_SUM = 2**48
"""64 counts of 2^32 rows, and noise of 90 scales each."""
_SUM = Struct("<q")


def _read_sums(data: bytes) -> tuple[int, ...]:
    if len(data) % _SUM.size:
        raise MalformedRecord("not whole sums", where="charge", expected="8 bytes each")
    return tuple(total for (total,) in _SUM.iter_unpack(data))


def _sum_bytes(sums: Sequence[int]) -> bytes:
    return b"".join(_SUM.pack(total) for total in sums)


@dataclass(frozen=True, slots=True)
class Charge(EntryBody):
    """A question, and the rows that have paid for it before anything was generated.

    Attributes:
        version, rows: of the tenant's index, N rows.
        filter_digest, query_digest, embedding_digest, sketch_digest: as of a record.
        pseudonym: of the account, 32 bytes.
        epoch, slot, counter: g, i, c: which key of C_seed the coins come from. One counter of an
            account counts its records and its charges.
        activation: a.
        time: Unix milliseconds.
        number: n_t, from 0: its place among the tenant's charge entries of the window.
        threshold: tau_t in lattice units; None where nothing is charged (NAIVE).
        charge: B_t, 32 bytes; None where nothing is charged.
        sums: the noisy running sums of the bins that were read (MURAG-ADA), released with it; else
            empty.
    """

    KIND: ClassVar[str] = "charge"
    READ: ClassVar[Readers] = (
        *(bytes, read_text, read_text, read_int, read_int, bytes, bytes),
        *(read_int, read_int, read_int, read_int, read_int),
        *(bytes, bytes, bytes, read_int, read_optional_int, read_optional_digest),
        _read_sums,
    )

    policy_digest: bytes
    window: str
    tenant: str
    version: int
    rows: int
    filter_digest: bytes
    pseudonym: bytes
    epoch: int
    slot: int
    counter: int
    activation: int
    time: int
    query_digest: bytes
    embedding_digest: bytes
    sketch_digest: bytes
    number: int
    threshold: int | None
    charge: bytes | None
    sums: tuple[int, ...] = ()

    def _fields(self) -> tuple[Field, ...]:
        return (*(super(Charge, self)._fields()[:-1]), _sum_bytes(self.sums))

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_digests(self.policy_digest, self.filter_digest, self.pseudonym, self.query_digest)
        check_digests(self.embedding_digest, self.sketch_digest, self.charge)
        check_range("version", self.version, 1, MAX_TIME)
        check_range("rows", self.rows, 1, _MAX_ROWS)
        check_range("epoch", self.epoch, 1, MAX_TIME)
        check_range("slot", self.slot, 0, _MAX_SLOTS - 1)
        check_range("counter", self.counter, 0, _MAX_QUERIES - 1)
        check_range("activation", self.activation, 1, MAX_TIME)
        check_range("time", self.time, 0, MAX_TIME)
        check_range("number", self.number, 0, MAX_CHARGES - 1)
        if (self.threshold is None) != (self.charge is None):
            raise MalformedRecord("a threshold or a charge alone", where=self.KIND)
        if self.threshold is not None:
            check_range("threshold", self.threshold, 0, SQUARED_NORM)
        elif self.sums:
            raise MalformedRecord("sums where nothing is charged", where=self.KIND)
        check_range("sums", len(self.sums), 0, MAX_BINS)
        for total in self.sums:
            check_range("sum", total, -_LARGEST_SUM, _LARGEST_SUM)

    @classmethod
    def parse_promised(cls, body: bytes) -> Self:
        """Return the charge of a promise's body; MalformedRecord if it is none."""
        return cls.parse(body)

    def promised(self) -> Self:
        """Return what is promised of the entry: all of it, as its nonce stands in the answer."""
        return self


@dataclass(frozen=True, slots=True)
class Generated(EntryBody):
    """The answer to a charge entry: one for each, or a void.

    Attributes:
        charge: index in the log of the charge entry.
        time: Unix milliseconds.
        nonce: of an anchored account's chain, 32 bytes: revealed once the charge was durable.
        generated_digest: of the answer, see `GeneratedAnswer.digest`, 32 bytes.
    """

    KIND: ClassVar[str] = "answer"
    READ = (read_text, read_text, read_int, read_int, read_optional_digest, bytes)

    window: str
    tenant: str
    charge: int
    time: int
    nonce: bytes | None
    generated_digest: bytes

    def __post_init__(self) -> None:
        _check_place(self.window, self.tenant, self.charge, self.time)
        check_digests(self.nonce, self.generated_digest)


@dataclass(frozen=True, slots=True)
class Void(EntryBody):
    """A charge entry has no answer and gets none; what was charged stays charged.

    Attributes:
        charge: index in the log of the charge entry, whose nonce was never revealed.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "void"
    READ = (read_text, read_text, read_int, read_int)

    window: str
    tenant: str
    charge: int
    time: int

    def __post_init__(self) -> None:
        _check_place(self.window, self.tenant, self.charge, self.time)


def _check_place(window: str, tenant: str, charge: int, time: int) -> None:
    check_window(window)
    check_tenant(tenant)
    # Entry 0 is the opening.
    check_range("charge", charge, 1, MAX_TIME)
    check_range("time", time, 0, MAX_TIME)
