"""Bodies of the log's entries (docs/spec/05-records.md §5.7).

Every body is ``enc("ragaudit/v1/entry/<kind>", ..)``; `parse` accepts exactly what `encode`
writes and checks each field's range. Whether a body is *true* is for the audit to say.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias, get_args

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import (
    Field,
    enc,
    read_digest,
    read_int,
    read_optional_digest,
    read_optional_int,
    read_text,
)
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.account_index import Accounts
from ragaudit.ledger.messages.charges import Charge, Generated, Void
from ragaudit.ledger.messages.documents import Documents
from ragaudit.ledger.messages.encoded import (
    EntryBody,
    Readers,
    check_digests,
    check_key,
    check_range,
    field_count,
    parsed_body,
)
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.identifiers import check_tenant, check_window
from ragaudit.ledger.messages.kernel import MAX_TIME

MAX_TENANTS = 1000
MAX_ROWS = 2**40
MAX_SLOTS = 1_000_000
MAX_QUERIES = 1_000_000

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

    In force from the instant that activates its entry, see `versions.VersionSchedule`.

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
