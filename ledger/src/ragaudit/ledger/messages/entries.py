"""Bodies of the log's entries (docs/spec/05-records.md §5.7, docs/spec/11-generation.md §11.9).

Every body is ``enc("ragaudit/v1/entry/<kind>", ..)``; `parse` accepts exactly what `encode`
writes and checks each field's range. Whether a body is *true* is for the audit to say.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from operator import call
from struct import Struct
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar, get_args

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.tagged import (
    DIGEST_BYTES,
    Field,
    decode,
    enc,
    read_digest,
    read_int,
    read_optional_digest,
    read_optional_int,
    read_text,
)
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.generation_terms import MAX_BINS
from ragaudit.ledger.messages.identifiers import check_tenant, check_window
from ragaudit.ledger.messages.kernel import MAX_TIME

T = TypeVar("T")


def parsed_body(tag: str, data: bytes, count: int, build: Callable[[tuple[bytes, ...]], T]) -> T:
    """Return what ``build`` makes of the fields of an encoded body (docs/spec/01-encoding.md).

    Args:
        tag: that the body must have, so that no body is read as another kind.
        data: ``enc(tag, ..)``.
        count: of the fields.
        build: from the fields, as bytes.

    Raises:
        MalformedRecord: another tag, count or encoding, or what ``build`` refuses.
    """
    try:
        return build(decode(tag, data, count))
    # It already says which field is wrong.
    except MalformedRecord:
        raise
    except MalformedError as error:
        raise MalformedRecord(error.what, where=tag, expected=error.expected) from error


def field_count(tag: str, data: bytes) -> int:
    """Return how many fields an encoded body says it has, where kinds of a body differ in that.

    The count is read before the tag is: what it means is checked by the reader of the fields.

    Args:
        tag: that the body must have.
        data: ``enc(tag, ..)``, or anything else.
    """
    head = len(enc(tag)) - 2
    return int.from_bytes(data[head : head + 2], "little")


def check_range(what: str, value: int, low: int, high: int) -> None:
    """Check that an integer lies in ``low``..``high``.

    Raises:
        MalformedRecord: it does not; the error calls it ``what``.
    """
    if not low <= value <= high:
        raise MalformedRecord(f"{what} {value} out of range", expected=f"{low}..{high}")


def check_digests(*values: bytes | None) -> None:
    """Check that each value that is there is a digest of 32 bytes.

    Raises:
        MalformedRecord: another length.
    """
    for value in values:
        if value is not None and len(value) != DIGEST_BYTES:
            raise MalformedRecord("digest field has a wrong length", expected="32 bytes")


def check_key(raw: bytes) -> None:
    """Check that this is an Ed25519 public key of 32 bytes.

    Raises:
        MalformedRecord: another length, or no point that may be a key.
    """
    try:
        PublicKey.from_raw(raw)
    except MalformedError as error:
        raise MalformedRecord(error.what, where="dispute key", expected=error.expected) from error


Readers: TypeAlias = tuple[Callable[[bytes], Any], ...]


@dataclass(frozen=True, slots=True)
class EntryBody:
    """A body: its attributes in order, under a tag of its own, so that none is read as another.

    Attributes:
        KIND: of the entry; TAG is made of it.
        READ: reader of each field.
    """

    KIND: ClassVar[str]
    TAG: ClassVar[str]
    READ: ClassVar[Readers]

    def __init_subclass__(cls) -> None:
        cls.TAG = f"ragaudit/v1/entry/{cls.KIND}"

    def _fields(self) -> tuple[Field, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> Self:
        return cls(*map(call, cls.READ, f))  # as many fields as readers: `parse` counts them

    def encode(self) -> bytes:
        """Return the body as it is logged (docs/spec/01-encoding.md §1.1)."""
        return enc(self.TAG, *self._fields())

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Return the body in ``body``, the strict inverse of `encode`.

        Args:
            body: of a log entry, as an untrusted party sent it.

        Raises:
            MalformedRecord: another kind or encoding, or a field out of range.
        """
        return parsed_body(cls.TAG, body, len(cls.READ), cls._from)


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


@dataclass(frozen=True, slots=True)
class Epoch(EntryBody):
    """A later seed epoch, under which a log goes on after a restore (5.15).

    In force from the instant that activates its entry, see `schedules.EpochSchedule`.

    Attributes:
        epoch: g, 2 and up, rising by one.
        reason: "restore": database or fence were lost, or came from a backup; "key-loss": the seed
            before was lost or became known.
        previous_root, seed_root: C_seed[g-1] and C_seed[g], 32 bytes; both empty without noise.
        size, root: of the largest checkpoint that was cosigned when the entry was made: the log
            has all of it.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "epoch"
    READ = (read_text, read_int, read_text, bytes, bytes, read_int, bytes, read_int)
    REASONS: ClassVar[tuple[str, ...]] = ("restore", "key-loss")

    window: str
    epoch: int
    reason: str
    previous_root: bytes
    seed_root: bytes
    size: int
    root: bytes
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_range("epoch", self.epoch, 2, MAX_TIME)
        if self.reason not in self.REASONS:
            raise MalformedRecord("reason", where=self.KIND, expected=" or ".join(self.REASONS))
        check_digests(self.previous_root or None, self.seed_root or None, self.root)
        # With noise both, without it neither: one alone would be of no window.
        if bool(self.previous_root) != bool(self.seed_root):
            raise MalformedRecord("one seed commitment of two", where=self.KIND)
        check_range("size", self.size, 0, MAX_TIME)
        check_range("time", self.time, 0, MAX_TIME)


MAX_TENANTS = 10_000
MAX_ROWS = 2**40
MAX_SLOTS = 1_000_000
MAX_QUERIES = 1_000_000
MAX_ACCOUNTS: Final = 1_000_000  # as many as a policy can have slots
MAX_VERSION: Final = 2**32 - 1
MAX_DOCUMENTS: Final = 2**40  # as many as an index can have rows
_TENANT = "ragaudit/v1/opening/tenant"
_OWNED = 6  # fields of a tenant's part under `owners`


@dataclass(frozen=True, slots=True)
class TenantOpening:
    """One version of a tenant's index, as the opening or a version entry commits to it.

    Attributes:
        rows: N, 1..2^40.
        index_root: of C_idx, 32 bytes.
        proof_digest: of pi_idx, 32 bytes.
        version: v; 1 in the opening, later ones are entries of their own (`Version.index`).
        id_commitment: to the tenant's document secret, 32 bytes; None without ``owners`` (5.16),
            and in entries of later versions, which repeat nothing of the opening.
    """

    tenant: str
    rows: int
    index_root: bytes
    proof_digest: bytes
    version: int = 1
    id_commitment: bytes | None = None

    def __post_init__(self) -> None:
        check_tenant(self.tenant)
        check_range("rows", self.rows, 1, MAX_ROWS)
        check_range("version", self.version, 1, MAX_TIME)
        check_digests(self.index_root, self.proof_digest, self.id_commitment)

    def encode(self) -> bytes:
        """Return the tenant's part of an opening."""
        fixed = (self.tenant, self.version, self.rows, self.index_root, self.proof_digest)
        more = () if self.id_commitment is None else (self.id_commitment,)
        return enc(_TENANT, *fixed, *more)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the part in ``data``, the strict inverse of `encode`; MalformedRecord."""
        # What has one field more must have it: `read_digest` takes no absent one.
        owned = field_count(_TENANT, data) == _OWNED
        return parsed_body(_TENANT, data, _OWNED if owned else _OWNED - 1, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> Self:
        commitment = read_digest(f[5]) if len(f) == _OWNED else None
        opened = cls(read_text(f[0]), read_int(f[2]), f[3], f[4], read_int(f[1]), commitment)
        check_range("version", opened.version, 1, 1)  # later ones are entries of their own (5.7)
        return opened


@dataclass(frozen=True, slots=True)
class Opening(EntryBody):
    """Entry 0 of the log: what the provider commits to before the window.

    Attributes:
        policy_digest, embedder_digest: C_policy and C_emb, 32 bytes each.
        seed_root: C_seed of epoch 1: fixed here, no noise can be chosen after a query is known.
            Empty (absent) in a window without noise; whether it must be, the policy says.
        tenants: in rising order of their names.
    """

    KIND: ClassVar[str] = "opening"

    policy_digest: bytes
    embedder_digest: bytes
    seed_root: bytes
    tenants: tuple[TenantOpening, ...]

    def __post_init__(self) -> None:
        check_digests(self.policy_digest, self.embedder_digest, self.seed_root or None)
        check_range("number of tenants", len(self.tenants), 1, MAX_TENANTS)
        names = [tenant.tenant for tenant in self.tenants]
        check_range("version", max(tenant.version for tenant in self.tenants), 1, 1)
        # With two indexes of one tenant, readers could disagree on which one is searched.
        if names != sorted(set(names)):
            raise MalformedRecord("tenants not rising and distinct", where=self.KIND)

    def check_terms(self, *, noised: bool, owned: bool) -> None:
        """Check that it commits to what the window's policy asks for, and to nothing else.

        Args:
            noised: whether noise is added, whose keys are then committed to.
            owned: whether the policy has ``owners``; document secrets are then committed to.

        Raises:
            MalformedRecord: a commitment missing, or one to what there is not.
        """
        if bool(self.seed_root) != noised:
            expected = "C_seed" if noised else "none in a window without noise"
            raise MalformedRecord("seed commitment", where=self.KIND, expected=expected)
        if any((tenant.id_commitment is not None) != owned for tenant in self.tenants):
            expected = "one for each tenant" if owned else "none without owners"
            raise MalformedRecord("id commitments", where=self.KIND, expected=expected)

    def tenant(self, name: str) -> TenantOpening:
        """Return the index of a tenant.

        Raises:
            MalformedRecord: the opening does not have it.
        """
        named = [tenant for tenant in self.tenants if tenant.tenant == name]
        if not named:
            raise MalformedRecord("no such tenant", where=self.KIND)
        return named[0]

    def _fields(self) -> tuple[Field, ...]:
        tenants = [tenant.encode() for tenant in self.tenants]
        return (self.policy_digest, self.embedder_digest, self.seed_root, *tenants)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Return the opening in ``body``, which has three fields and one for each tenant.

        Raises:
            MalformedRecord: another kind or encoding, or a field out of range.
        """
        count = field_count(cls.TAG, body)
        check_range("number of fields", count, 4, 3 + MAX_TENANTS)
        return parsed_body(cls.TAG, body, count, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> Self:
        return cls(f[0], f[1], f[2], tuple(map(TenantOpening.parse, f[3:])))


@dataclass(frozen=True, slots=True)
class Registration(EntryBody):
    """An account under its pseudonym: tenant, slot, and what it brought.

    Attributes:
        pseudonym: 32 bytes.
        slot: row of C_seed whose keys its noise uses, 0..999,999.
        anchor: of its nonce chain, 32 bytes; None for a plain account.
        time: Unix milliseconds.
        dispute_key: its Ed25519 public key, 32 bytes; None for an account that never disputes.
    """

    KIND: ClassVar[str] = "registration"
    READ = (read_text, bytes, read_text, read_int, *2 * (read_optional_digest,), read_int)

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
        check_digests(self.pseudonym, self.anchor, self.dispute_key)
        if self.dispute_key is not None:
            check_key(self.dispute_key)
        check_range("slot", self.slot, 0, MAX_SLOTS - 1)
        check_range("time", self.time, 0, MAX_TIME)


@dataclass(frozen=True, slots=True)
class Record(EntryBody):
    """One answered query; with nonce and selection commitment absent, the body of a promise.

    Attributes:
        version, rows: of the tenant's index that was searched, N rows.
        top_k: K, 1..1000.
        pseudonym: of the account, 32 bytes.
        epoch, slot, counter: g, i, c: which key of C_seed the noise was made with.
        activation: a, whose randomness went into the noise.
        time: Unix milliseconds.
        nonce: of an anchored account's chain, 32 bytes: it fixes the noise after the promise.
        filter_digest, query_digest, embedding_digest, sketch_digest: salted, 32 bytes each.
        selection_commitment: B_sel, 32 bytes.
        withheld: in a window without noise how many rows of the answer are withheld, 0..1000; None
            with noise, where the count would tell the verifier of the selection.
    """

    KIND: ClassVar[str] = "record"
    READ: ClassVar[Readers] = (
        *(bytes, read_text, read_text, read_int, read_int, read_int, bytes, bytes),
        *(read_int, read_int, read_int, read_int, read_int, read_optional_digest),
        *(bytes, bytes, bytes, read_optional_digest, read_optional_int),
    )

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
    withheld: int | None = None

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_digests(self.policy_digest, self.filter_digest, self.pseudonym, self.query_digest)
        check_digests(self.embedding_digest, self.sketch_digest)
        check_digests(self.nonce, self.selection_commitment)  # absent in a promise
        if self.nonce is not None and self.selection_commitment is None:
            # The nonce is revealed for the whole record: alone it would belong to no answer.
            raise MalformedRecord("a nonce without a selection", where=self.KIND)
        check_range("version", self.version, 1, MAX_TIME)
        check_range("rows", self.rows, 1, MAX_ROWS)
        check_range("top_k", self.top_k, 1, LIMITS.top_k)
        check_range("epoch", self.epoch, 1, MAX_TIME)
        check_range("slot", self.slot, 0, MAX_SLOTS - 1)
        check_range("counter", self.counter, 0, MAX_QUERIES - 1)
        check_range("activation", self.activation, 1, MAX_TIME)
        check_range("time", self.time, 0, MAX_TIME)
        if self.withheld is not None:
            check_range("withheld", self.withheld, 0, LIMITS.top_k)

    def promised(self) -> "Record":
        """Return what a promise says of this record: everything but nonce and selection."""
        return replace(self, nonce=None, selection_commitment=None)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Return the record of a log entry's body.

        Args:
            body: of a log entry; that of a promise is refused, for it commits to no answer.

        Raises:
            MalformedRecord: another kind or encoding, a field out of range, or no selection.
        """
        record = parsed_body(cls.TAG, body, len(cls.READ), cls._from)
        if record.selection_commitment is None:
            raise MalformedRecord("a record without a selection", where=cls.KIND)
        return record

    @classmethod
    def parse_promised(cls, body: bytes) -> Self:
        """Return the record of a promise's body.

        Args:
            body: of a promise; that of a log entry is refused, so that none passes for the other.

        Raises:
            MalformedRecord: another kind or encoding, a field out of range, or a selection.
        """
        record = parsed_body(cls.TAG, body, len(cls.READ), cls._from)
        if (record.selection_commitment, record.withheld) != (None, None):
            raise MalformedRecord("a promise with a selection", where=cls.KIND)
        return record


@dataclass(frozen=True, slots=True)
class Close(EntryBody):
    """The last entry.

    Attributes:
        records: how many the log has: a provider that later cuts one off contradicts itself.
        coalition_claim: k-hat, the largest coalition that the provider says it saw.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "close"
    READ = (read_text, read_int, read_int, read_int)

    window: str
    records: int
    coalition_claim: int
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_range("records", self.records, 0, MAX_ROWS)
        check_range("coalition claim", self.coalition_claim, 0, MAX_SLOTS)
        check_range("time", self.time, 0, MAX_TIME)


@dataclass(frozen=True, slots=True)
class Version(EntryBody):
    """A later version of a tenant's index; in windows that allow none it fails check 9.

    In force from the instant that activates its entry, see `schedules.VersionSchedule`.

    Attributes:
        version: v, 2 and up, rising by one for each tenant.
        rows, index_root, proof_digest: as of `TenantOpening`; rows never fall.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "version"
    READ = (read_text, read_text, read_int, read_int, bytes, bytes, read_int)

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

    @property
    def index(self) -> TenantOpening:
        """The index that it commits to, in the form of the opening's."""
        return TenantOpening(
            self.tenant, self.rows, self.index_root, self.proof_digest, self.version
        )


@dataclass(frozen=True, slots=True)
class Accounts(EntryBody):
    """The entry before the close.

    Attributes:
        accounts: n, how many accounts the index has.
        index_root: over its n + 2 rows, 32 bytes.
    """

    KIND: ClassVar[str] = "accounts"
    READ: ClassVar[Readers] = (read_text, read_int, bytes)

    window: str
    accounts: int
    index_root: bytes

    def __post_init__(self) -> None:
        check_window(self.window)
        check_range("accounts", self.accounts, 0, MAX_ACCOUNTS)
        check_digests(self.index_root)


@dataclass(frozen=True, slots=True)
class Documents(EntryBody):
    """The entry of a tenant near the end of the log.

    Attributes:
        version: v, the last version of the tenant's index, 1..2^32-1.
        documents: n, how many documents the list has, 1..2^40.
        list_root: over its n + 2 rows, 32 bytes.
    """

    KIND: ClassVar[str] = "documents"
    READ: ClassVar[Readers] = (read_text, read_text, read_int, read_int, bytes)

    window: str
    tenant: str
    version: int
    documents: int
    list_root: bytes

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_range("version", self.version, 1, MAX_VERSION)
        check_range("documents", self.documents, 1, MAX_DOCUMENTS)
        check_digests(self.list_root)


Body: TypeAlias = (
    Opening
    | Registration
    | Record
    | Close
    | Version
    | Epoch
    | Accounts
    | Documents
    | Charge
    | Generated
    | Void
)

QueryEntry: TypeAlias = Record | Charge
"""A query of an account: it has one counter over records and charge entries."""

_KINDS: dict[str, type[Body]] = {kind.KIND: kind for kind in get_args(Body)}


def parse_body(kind: str, body: bytes) -> Body:
    """Return the body of an entry of ``kind``, one of the eleven.

    Raises:
        MalformedRecord: an unknown kind, or not a body of this kind.
    """
    if kind not in _KINDS:
        raise MalformedRecord("unknown kind of entry", expected=", ".join(_KINDS))
    return _KINDS[kind].parse(body)


def entry_leaf_data(salt: bytes, body: Body) -> bytes:
    """Return the 32 bytes which stand in the log for a body, under a secret salt of 32 bytes."""
    # Without a salt whoever reads the log could guess a body and compare.
    return leaf_data(salt, body.KIND, body.encode())
