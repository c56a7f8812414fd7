"""Bodies of the log's entries (docs/spec/05-records.md §5.7).

Every body is ``enc("ragaudit/v1/entry/<kind>", ..)``; `decode` accepts exactly what `encode`
writes and checks each field's range. Whether a body is *true* is for the audit to say.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.tagged import Field, enc, read_int, read_optional_digest, read_text
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.entry_fields import (
    check_digests,
    check_key,
    check_optional_digests,
    check_range,
    decoded,
)
from ragaudit.ledger.messages.identifiers import check_tenant, check_window

MAX_TENANTS = 1000
MAX_ROWS = 2**40
MAX_TOP_K = 1000
MAX_SLOTS = 1_000_000
MAX_QUERIES = 1_000_000
MAX_TIME = 2**53 - 1  # milliseconds
MAX_REASON_BYTES = 500

_ENTRY = "ragaudit/v1/entry/"
_TENANT = "ragaudit/v1/opening/tenant"


@dataclass(frozen=True, slots=True)
class TenantOpening:
    """One tenant's index at the opening: version 1, N rows, root of C_idx, digest of pi_idx."""

    tenant: str
    rows: int
    index_root: bytes
    proof_digest: bytes
    version: int = 1

    def __post_init__(self) -> None:
        check_tenant(self.tenant)
        check_range("rows", self.rows, 1, MAX_ROWS)
        check_range("version", self.version, 1, 1)
        check_digests(self.index_root, self.proof_digest)

    def encode(self) -> bytes:
        return enc(
            _TENANT, self.tenant, self.version, self.rows, self.index_root, self.proof_digest
        )

    @classmethod
    def decode(cls, data: bytes) -> "TenantOpening":
        """Strict inverse of `encode`; MalformedRecord."""
        return decoded(_TENANT, data, 5, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "TenantOpening":
        return cls(read_text(f[0]), read_int(f[2]), f[3], f[4], read_int(f[1]))


@dataclass(frozen=True, slots=True)
class Opening:
    """Entry 0 of the log: what the provider commits to before the window."""

    KIND: ClassVar[str] = "opening"

    policy_digest: bytes
    embedder_digest: bytes
    seed_root: bytes
    tenants: tuple[TenantOpening, ...]

    def __post_init__(self) -> None:
        check_digests(self.policy_digest, self.embedder_digest, self.seed_root)
        check_range("number of tenants", len(self.tenants), 1, MAX_TENANTS)
        names = [each.tenant for each in self.tenants]
        if names != sorted(set(names)):
            raise MalformedRecord("tenants not rising and distinct", where=self.KIND)

    def tenant(self, name: str) -> TenantOpening:
        """The index of a tenant; MalformedRecord if the opening does not have it."""
        for each in self.tenants:
            if each.tenant == name:
                return each
        raise MalformedRecord("no such tenant", where=self.KIND)

    def encode(self) -> bytes:
        tenants = [each.encode() for each in self.tenants]
        fixed = (self.policy_digest, self.embedder_digest, self.seed_root)
        return enc(_ENTRY + self.KIND, *fixed, *tenants)

    @classmethod
    def decode(cls, body: bytes) -> "Opening":
        """Strict inverse of `encode`; MalformedRecord."""
        head = len(enc(_ENTRY + cls.KIND)) - 2
        count = int.from_bytes(body[head : head + 2], "little")  # decode() checks what it means
        check_range("number of fields", count, 4, 3 + MAX_TENANTS)
        return decoded(_ENTRY + cls.KIND, body, count, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "Opening":
        return cls(f[0], f[1], f[2], tuple(map(TenantOpening.decode, f[3:])))


@dataclass(frozen=True, slots=True)
class Registration:
    """An account under its pseudonym: tenant, slot, and what it brought.

    Attributes:
        anchor: of its nonce chain; None for a plain account.
        dispute_key: its Ed25519 public key, 32 bytes; None for an account that never disputes.
    """

    KIND: ClassVar[str] = "registration"

    window: str
    pseudonym: bytes
    tenant: str
    slot: int
    anchor: bytes | None
    dispute_key: bytes | None
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_digests(self.pseudonym)
        check_optional_digests(self.anchor, self.dispute_key)
        if self.dispute_key is not None:
            check_key(self.dispute_key)
        check_range("slot", self.slot, 0, MAX_SLOTS - 1)
        check_range("time", self.time, 0, MAX_TIME)

    def encode(self) -> bytes:
        place = (self.window, self.pseudonym, self.tenant, self.slot)
        return enc(_ENTRY + self.KIND, *place, self.anchor, self.dispute_key, self.time)

    @classmethod
    def decode(cls, body: bytes) -> "Registration":
        """Strict inverse of `encode`; MalformedRecord."""
        return decoded(_ENTRY + cls.KIND, body, 7, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "Registration":
        return cls(
            window=read_text(f[0]),
            pseudonym=f[1],
            tenant=read_text(f[2]),
            slot=read_int(f[3]),
            anchor=read_optional_digest(f[4]),
            dispute_key=read_optional_digest(f[5]),
            time=read_int(f[6]),
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One answered query; with nonce and selection commitment absent, the body of a promise."""

    KIND: ClassVar[str] = "record"

    policy_digest: bytes
    window: str
    tenant: str
    version: int
    rows: int
    top_k: int
    filter_digest: bytes
    pseudonym: bytes
    epoch: int
    slot: int
    counter: int
    activation: int
    time: int
    nonce: bytes | None
    query_digest: bytes
    embedding_digest: bytes
    sketch_digest: bytes
    selection_commitment: bytes | None

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_digests(self.policy_digest, self.filter_digest, self.pseudonym, self.query_digest)
        check_digests(self.embedding_digest, self.sketch_digest)
        check_optional_digests(self.nonce, self.selection_commitment)
        if self.nonce is not None and self.selection_commitment is None:
            raise MalformedRecord("a nonce without a selection", where=self.KIND)
        check_range("version", self.version, 1, MAX_TIME)
        check_range("rows", self.rows, 1, MAX_ROWS)
        check_range("top_k", self.top_k, 1, MAX_TOP_K)
        check_range("epoch", self.epoch, 1, MAX_TIME)
        check_range("slot", self.slot, 0, MAX_SLOTS - 1)
        check_range("counter", self.counter, 0, MAX_QUERIES - 1)
        check_range("activation", self.activation, 1, MAX_TIME)
        check_range("time", self.time, 0, MAX_TIME)

    def promised(self) -> "Record":
        """What a promise says of this record: everything but nonce and selection."""
        return replace(self, nonce=None, selection_commitment=None)

    def encode(self) -> bytes:
        """The body; its last field, the digest of an eager proof, is absent in version 1."""
        fields: tuple[Field, ...] = (
            self.policy_digest,
            self.window,
            self.tenant,
            self.version,
            self.rows,
            self.top_k,
            self.filter_digest,
            self.pseudonym,
            self.epoch,
            self.slot,
            self.counter,
            self.activation,
            self.time,
            self.nonce,
            self.query_digest,
            self.embedding_digest,
            self.sketch_digest,
            self.selection_commitment,
            None,
        )
        return enc(_ENTRY + self.KIND, *fields)

    @classmethod
    def decode(cls, body: bytes) -> "Record":
        """The record of a log entry's body; MalformedRecord, also for a promise's body."""
        record = decoded(_ENTRY + cls.KIND, body, 19, cls._from)
        if record.selection_commitment is None:
            raise MalformedRecord("a record without a selection", where=cls.KIND)
        return record

    @classmethod
    def decode_promised(cls, body: bytes) -> "Record":
        """The record of a promise's body; MalformedRecord, also for a whole record's body."""
        record = decoded(_ENTRY + cls.KIND, body, 19, cls._from)
        if record.selection_commitment is not None:
            raise MalformedRecord("a promise with a selection", where=cls.KIND)
        return record

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "Record":
        if f[18]:
            raise MalformedRecord("an eager proof's digest", expected="absent in version 1")
        version, rows, top_k = (read_int(each) for each in f[3:6])
        epoch, slot, counter, activation, time = (read_int(each) for each in f[8:13])
        return cls(
            policy_digest=f[0],
            window=read_text(f[1]),
            tenant=read_text(f[2]),
            version=version,
            rows=rows,
            top_k=top_k,
            filter_digest=f[6],
            pseudonym=f[7],
            epoch=epoch,
            slot=slot,
            counter=counter,
            activation=activation,
            time=time,
            nonce=read_optional_digest(f[13]),
            query_digest=f[14],
            embedding_digest=f[15],
            sketch_digest=f[16],
            selection_commitment=read_optional_digest(f[17]),
        )


@dataclass(frozen=True, slots=True)
class Close:
    """The last entry: the number of records, and the provider's coalition claim k-hat."""

    KIND: ClassVar[str] = "close"

    window: str
    records: int
    coalition_claim: int
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_range("records", self.records, 0, MAX_ROWS)
        check_range("coalition claim", self.coalition_claim, 0, MAX_SLOTS)
        check_range("time", self.time, 0, MAX_TIME)

    def encode(self) -> bytes:
        return enc(_ENTRY + self.KIND, self.window, self.records, self.coalition_claim, self.time)

    @classmethod
    def decode(cls, body: bytes) -> "Close":
        """Strict inverse of `encode`; MalformedRecord."""
        return decoded(_ENTRY + cls.KIND, body, 4, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "Close":
        return cls(read_text(f[0]), *(read_int(each) for each in f[1:]))


@dataclass(frozen=True, slots=True)
class Version:
    """A later index version: a reserved kind, FAIL in version 1."""

    KIND: ClassVar[str] = "version"

    window: str
    tenant: str
    version: int
    rows: int
    index_root: bytes
    proof_digest: bytes
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_digests(self.index_root, self.proof_digest)
        check_range("version", self.version, 2, MAX_TIME)
        check_range("rows", self.rows, 1, MAX_ROWS)
        check_range("time", self.time, 0, MAX_TIME)

    def encode(self) -> bytes:
        place = (self.window, self.tenant, self.version, self.rows)
        return enc(_ENTRY + self.KIND, *place, self.index_root, self.proof_digest, self.time)

    @classmethod
    def decode(cls, body: bytes) -> "Version":
        """Strict inverse of `encode`; MalformedRecord."""
        return decoded(_ENTRY + cls.KIND, body, 7, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "Version":
        version, rows, time = read_int(f[2]), read_int(f[3]), read_int(f[6])
        return cls(read_text(f[0]), read_text(f[1]), version, rows, f[4], f[5], time)


@dataclass(frozen=True, slots=True)
class Epoch:
    """A later seed epoch: a reserved kind, FAIL in version 1."""

    KIND: ClassVar[str] = "epoch"

    window: str
    epoch: int
    seed_root: bytes
    reason: str
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_digests(self.seed_root)
        check_range("epoch", self.epoch, 2, MAX_TIME)
        check_range("bytes of the reason", len(self.reason.encode()), 1, MAX_REASON_BYTES)
        check_range("time", self.time, 0, MAX_TIME)

    def encode(self) -> bytes:
        fields = (self.window, self.epoch, self.seed_root, self.reason, self.time)
        return enc(_ENTRY + self.KIND, *fields)

    @classmethod
    def decode(cls, body: bytes) -> "Epoch":
        """Strict inverse of `encode`; MalformedRecord."""
        return decoded(_ENTRY + cls.KIND, body, 5, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "Epoch":
        return cls(read_text(f[0]), read_int(f[1]), f[2], read_text(f[3]), read_int(f[4]))


Body: TypeAlias = Opening | Registration | Record | Close | Version | Epoch

_DECODERS: dict[str, Callable[[bytes], Body]] = {
    "opening": Opening.decode,
    "registration": Registration.decode,
    "record": Record.decode,
    "close": Close.decode,
    "version": Version.decode,
    "epoch": Epoch.decode,
}


def decode_body(kind: str, body: bytes) -> Body:
    """The body of an entry of ``kind``.

    Raises:
        MalformedRecord: an unknown kind, or not a body of this kind.
    """
    if kind not in _DECODERS:
        raise MalformedRecord("unknown kind of entry", expected=", ".join(_DECODERS))
    return _DECODERS[kind](body)


def entry_leaf_data(salt: bytes, body: Body) -> bytes:
    """The 32 bytes which stand in the log for ``body``."""
    return leaf_data(salt, body.KIND, body.encode())
