"""The account index: which records each account has (docs/spec/05-records.md §5.14).

A tree over one row for each account, sorted by key, so that two neighbouring rows prove that there
is none between them. Its root is logged right before the close.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, ClassVar, Final, NamedTuple, Self

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, NotFound
from ragaudit.encoding.tagged import read_int, read_text
from ragaudit.ledger.log.tree import root
from ragaudit.ledger.messages.encoded import EntryBody, Readers, check_digests, check_range
from ragaudit.ledger.messages.identifiers import check_window
from ragaudit.ledger.messages.kernel import Count, Digest, Items, Message
from ragaudit.ledger.messages.sorted_rows import FIRST, LAST, KeyedRow, ProvenRow, SortedRows

__all__ = ["AccountIndex", "AccountOpening", "Accounts", "ListedRecord"]

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


class AccountOpening(Message):
    """What the digest of an account's row hides.

    Attributes:
        salt: 32 bytes.
        records: log indices of the account's records, rising.
    """

    salt: Digest = field(repr=False)
    records: Annotated[tuple[Count, ...], Items(0, MAX_RECORDS)]

    @property
    def digest(self) -> bytes:
        """Return the digest that the row must have."""
        listed = root(index.to_bytes(_INDEX_BYTES, "big") for index in self.records)
        return structure(f"{_TAG}row", self.salt, len(self.records), listed)

    def _check(self) -> None:
        if any(a >= b for a, b in pairwise(self.records)):
            raise MalformedError("not rising", where="records", expected="rising log indices")


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
        self, window: str, rows: Sequence[KeyedRow], openings: dict[bytes, AccountOpening]
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
        self._sorted = SortedRows(row.encode() for row in self.rows)

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
            KeyedRow(account_key(window, pseudonym), opening.digest)
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
        return self._sorted.root

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
        rows = self._sorted.prove(account_key(self.window, pseudonym))
        if (len(rows) == 1) != (pseudonym in self._openings):
            raise NotFound("no row of this account", where="account index")
        return rows
