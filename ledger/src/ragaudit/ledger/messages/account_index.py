"""The account index: which records each account has (docs/spec/05-records.md §5.14).

A tree over one row for each account, sorted by key, so that two neighbouring rows prove that there
is none between them. Its root is logged right before the close.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple, Self

from ragaudit.encoding.digests import SALT_BYTES, structure
from ragaudit.encoding.errors import NotFound
from ragaudit.encoding.tagged import DIGEST_BYTES, read_int, read_text
from ragaudit.ledger.log.tlog_proof import MAX_PATH
from ragaudit.ledger.log.tree import HASH_BYTES, MemoryTree, root
from ragaudit.ledger.messages.encoded import EntryBody, Readers, check_digests, check_range
from ragaudit.ledger.messages.fields import MAX_TIME, Fields, JsonMessage
from ragaudit.ledger.messages.identifiers import check_window

__all__ = ["AccountIndex", "AccountOpening", "AccountRow", "Accounts", "ListedRecord", "ProvenRow"]

MAX_ACCOUNTS: Final = 1_000_000  # as many as a policy can have slots
MAX_RECORDS: Final = 1_000_000  # of one account: as many as a policy can allow it queries
_INDEX_BYTES: Final = 8
_TAG: Final = "account-index/"


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


class ListedRecord(NamedTuple):
    """What the index takes of a record.

    Attributes:
        position: of its entry in the log, from 0.
        salt: of its entry, 32 bytes.
        pseudonym: of its account, 32 bytes.
    """

    position: int
    salt: bytes
    pseudonym: bytes


@dataclass(frozen=True, slots=True, order=True)
class AccountRow:
    """A row of the index.

    Attributes:
        key: of the account, 32 bytes.
        digest: of its records under a salt, 32 bytes.
    """

    key: bytes
    digest: bytes

    def encode(self) -> bytes:
        """Return the leaf data of the row in the index's tree."""
        return self.key + self.digest


FIRST: Final = AccountRow(bytes(DIGEST_BYTES), bytes(DIGEST_BYTES))
LAST: Final = AccountRow(b"\xff" * DIGEST_BYTES, bytes(DIGEST_BYTES))
"""Nobody's rows, so that every key has two neighbours."""


@dataclass(frozen=True, slots=True)
class ProvenRow(JsonMessage):
    """A row with its place in the tree.

    Attributes:
        position: from 0; the first and the last row are nobody's.
        path: inclusion path, sibling of the leaf first.
    """

    MEMBERS: ClassVar[str] = "position key digest path"

    position: int
    row: AccountRow
    path: tuple[bytes, ...]

    def _members(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "key": self.row.key.hex(),
            "digest": self.row.digest.hex(),
            "path": [sibling.hex() for sibling in self.path],
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            position=f.integer("position", 0, MAX_ACCOUNTS + 1),
            row=AccountRow(f.hex("key", DIGEST_BYTES), f.hex("digest", DIGEST_BYTES)),
            path=f.hexes("path", MAX_PATH, HASH_BYTES),
        )


@dataclass(frozen=True, slots=True)
class AccountOpening(JsonMessage):
    """What the digest of an account's row hides.

    Attributes:
        salt: 32 bytes.
        records: log indices of the account's records, rising.
    """

    MEMBERS: ClassVar[str] = "salt records"

    salt: bytes = field(repr=False)
    records: tuple[int, ...]

    @property
    def digest(self) -> bytes:
        """Return the digest that the row must have."""
        listed = root(index.to_bytes(_INDEX_BYTES, "big") for index in self.records)
        return structure(f"{_TAG}row", self.salt, len(self.records), listed)

    def _members(self) -> dict[str, Any]:
        return {"salt": self.salt.hex(), "records": list(self.records)}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        records = f.integers("records", (0, MAX_RECORDS), 0, MAX_TIME)
        if any(a >= b for a, b in pairwise(records)):
            raise f.error("records", "not rising", expected="rising log indices")
        return cls(f.hex("salt", SALT_BYTES), records)


def account_key(window: str, pseudonym: bytes) -> bytes:
    """Return the key of an account's row, 32 bytes.

    Args:
        window: its name.
        pseudonym: of the account in this window, 32 bytes.
    """
    return structure(f"{_TAG}key", window, pseudonym)


class AccountIndex:
    """The rows of a window's accounts and what opens them.

    Attributes:
        window: its name.
        rows: in their order, nobody's two included.
    """

    def __init__(
        self, window: str, rows: Sequence[AccountRow], openings: dict[bytes, AccountOpening]
    ) -> None:
        """Take rows as they are; `build` makes them.

        Args:
            window: its name.
            rows: in the order that they have in the tree.
            openings: of each row, by pseudonym.
        """
        self.window = window
        self.rows = tuple(rows)
        self._openings = openings
        self._tree = MemoryTree(row.encode() for row in self.rows)

    @classmethod
    def build(
        cls, window: str, registered: Iterable[bytes], records: Iterable[ListedRecord]
    ) -> Self:
        """Return the index of a window.

        Args:
            window: its name.
            registered: pseudonyms of all registrations, in any order.
            records: all records, in log order.
        """
        salts: list[bytes] = []
        lists: dict[bytes, list[int]] = {pseudonym: [] for pseudonym in registered}
        for record in records:
            salts.append(record.salt)
            lists.setdefault(record.pseudonym, []).append(record.position)
        # Known to whoever holds every record, and to nobody else: an empty row cannot be guessed.
        secret = structure(f"{_TAG}secret", b"".join(salts))
        openings = {
            pseudonym: AccountOpening(structure(f"{_TAG}salt", secret, pseudonym), tuple(listed))
            for pseudonym, listed in lists.items()
        }
        rows = (
            AccountRow(account_key(window, pseudonym), opening.digest)
            for pseudonym, opening in openings.items()
        )
        return cls(window, (FIRST, *sorted(rows), LAST), openings)

    @property
    def accounts(self) -> int:
        """Return n, the number of accounts."""
        return len(self.rows) - 2

    @property
    def root(self) -> bytes:
        """Return the root over the rows, 32 bytes."""
        return self._tree.root()

    @property
    def entry(self) -> Accounts:
        """Return the body of the entry that commits to the index."""
        return Accounts(self.window, self.accounts, self.root)

    def opening(self, pseudonym: bytes) -> AccountOpening | None:
        """Return what opens the row of an account; None if it has none.

        Args:
            pseudonym: 32 bytes.
        """
        return self._openings.get(pseudonym)

    def prove(self, pseudonym: bytes) -> tuple[ProvenRow, ...]:
        """Return the row of an account, or the two rows between which it would stand.

        Args:
            pseudonym: 32 bytes.

        Raises:
            NotFound: the account has an opening, and its row is not in its place.
        """
        key = account_key(self.window, pseudonym)
        # Behind FIRST, whose key is no digest that anybody finds.
        at = bisect_left(self.rows, AccountRow(key, b""))
        if pseudonym not in self._openings:
            return self._proven(at - 1), self._proven(at)
        if self.rows[at].key != key:
            raise NotFound("no row of this account", where="account index")
        return (self._proven(at),)

    def _proven(self, position: int) -> ProvenRow:
        path = self._tree.inclusion_proof(position)
        return ProvenRow(position, self.rows[position], path)
