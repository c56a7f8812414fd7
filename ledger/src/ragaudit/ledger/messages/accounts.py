"""What a log says of one account: which records it has, or that it has none (docs/spec 5.14).

The account index is a tree over one row for each account, sorted by key, so that two neighbouring
rows prove that there is none between them; its root is logged right before the close. What a party
holds of one account (10.8) is lines of JSON, the same from verifier and provider. Neither writes,
nor needs whoever reads, more than a line at a time: an account may have a million records.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, NotFound
from ragaudit.ledger.errors import ProofRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import root
from ragaudit.ledger.messages.entries import Accounts, Record
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import (
    Count,
    Digest,
    Items,
    Message,
    Origin,
    ProviderName,
    Text,
    WindowName,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import Openings, Request, Salted
from ragaudit.ledger.messages.shown import OpenedEntry
from ragaudit.ledger.messages.sorted_rows import (
    FIRST,
    LAST,
    KeyedRow,
    ProvenRow,
    SortedRows,
    verify_absent,
    verify_present,
)

MAX_RECORDS: Final = 1_000_000  # of one account: as many as a policy can allow it queries
_INDEX_BYTES: Final = 8
_TAG: Final = "account-index/"


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


_AFTER = 2  # the entry itself and the close


class AccountProof(Message, kind="account-proof", where="account proof"):
    """What the log of a closed window says of one account.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account, 32 bytes.
        entry: the log's last entry but one.
        proof: text of its .tlog-proof, under the final checkpoint.
        rows: the account's, or its two neighbours where it has none.
        opening: of the account's row; None where it has none.
    """

    origin: Origin
    pseudonym: Digest
    entry: OpenedEntry
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)]
    rows: Annotated[tuple[ProvenRow, ...], Items(1, 2)]
    opening: AccountOpening | None

    @classmethod
    def of(
        cls,
        origin: str,
        pseudonym: bytes,
        index: AccountIndex,
        entry: OpenedEntry,
        proof: TlogProof,
    ) -> Self:
        """Return the proof for an account, which may be nobody's.

        Args:
            origin: of the window's log.
            pseudonym: 32 bytes.
            index: of the window.
            entry: as it was logged.
            proof: of the entry, under the final checkpoint.
        """
        rows, opening = index.prove(pseudonym), index.opening(pseudonym)
        return cls(origin, pseudonym, entry, proof.encode().decode(), rows, opening)

    @property
    def records(self) -> tuple[int, ...] | None:
        """Return the log indices of the account's records; None if it was never registered."""
        return None if self.opening is None else self.opening.records

    def verify(self, policy: Policy) -> None:
        """Check that the log of the window says this of the account.

        That the index behind it is sorted and whole is what the verdict's check 22 says.

        Args:
            policy: of the window; no key is taken from anywhere else.

        Raises:
            ProofRejected: of another log or window, not under the final checkpoint, a row that is
                not in the index, or that says something else.
            MalformedNote, NoteRejected: the checkpoint is not one that log and cosigner signed.
            MalformedProof, MalformedRecord: a path of another length, a body that is none.
        """
        if self.origin != policy.origin:
            raise ProofRejected("of another log", where=self.WHERE, expected=policy.origin)
        proof = TlogProof.parse(self.proof.encode())
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        cosigned = verify_tlog_proof(
            proof, leaf=self.entry.leaf(Accounts.KIND), log_key=policy.keys.log, cosigners=cosigners
        )
        # Under another one there could be records behind the index, which it does not count.
        if cosigned.signed.head.size != proof.index + _AFTER:
            raise ProofRejected("not the entry before the last", where="accounts entry")
        body = Accounts.parse(self.entry.body)
        if body.window != policy.window:
            raise ProofRejected("of another window", where=self.WHERE, expected=policy.window)
        key = account_key(body.window, self.pseudonym)
        if self.opening is None:
            verify_absent(self.rows, key, count=body.accounts, root=body.index_root)
            return
        verify_present(self.rows[0], key, count=body.accounts, root=body.index_root)
        self._verify_opened(self.opening, proof.index)

    def _verify_opened(self, opening: AccountOpening, entries: int) -> None:
        (proven,) = self.rows
        if opening.records and opening.records[-1] >= entries:
            raise ProofRejected("a record behind the index", where="opening", expected="before it")
        if opening.digest != proven.row.digest:
            raise ProofRejected("other records than in the index", where="opening")

    def _check(self) -> None:
        if len(self.rows) != (2 if self.opening is None else 1):
            raise MalformedError(f"{len(self.rows)} rows", expected="one opened, or two")


VERIFIER: Final = "verifier"
PROVIDER: Final = "provider"
KINDS: Final = frozenset(
    {
        *("entry", "opened", "promise", "receipt", "judged", "refusal"),
        *("claim", "statement", "dispute", "item"),
    }
)
_END: Final = "end"


class Line(NamedTuple):
    """Something of the account.

    Attributes:
        kind: one of `KINDS`.
        value: JSON.
    """

    kind: str
    value: Any

    @classmethod
    def of_entry(cls, entry: Entry) -> Self:
        """Return the line of an entry of the log; of a record with salt_s and sketch."""
        shown = entry.to_json()
        if entry.kind == Record.KIND:
            shown |= {"salt_s": entry.salt_s.hex(), "sketch": entry.sketch.hex()}
        return cls("entry", shown)

    @classmethod
    def opened(
        cls,
        index: int,
        request: Request | GenerationRequest,
        openings: Openings,
        *,
        issued: int | None,
        answer: Mapping[str, Any] | None,
        salt: bytes | None = None,
    ) -> Self:
        """Return what was asked and answered, of a record or a charge entry.

        Args:
            index: of the entry.
            issued: time of the receipt, Unix milliseconds; None without an answer.
            answer: what left, JSON; None if nothing did.
            salt: salt_a of a generated answer.
        """
        shown = openings.to_json()
        value = {
            "index": index,
            "request": request.to_json(),
            # Question and filter stand in the request.
            "openings": {name: shown[name] for name in Salted.FORMS},
            "issued": issued,
            "answer": answer,
            "salt": None if salt is None else salt.hex(),
        }
        return cls("opened", value)


class AccountRecords(Message, kind="account-records", where="account records"):
    """The first line: who holds what follows, and of whom it is.

    Attributes:
        holder: VERIFIER or PROVIDER.
        provider, window: whose window it is.
        pseudonym: of the account in it, 32 bytes.
    """

    holder: Literal["verifier", "provider"]
    provider: ProviderName
    window: WindowName
    pseudonym: Digest

    def lines(self, found: Iterable[Line]) -> Iterator[bytes]:
        """Yield all lines, each canonical JSON and LF.

        Args:
            found: everything of the account, taken one by one.
        """
        yield _line(self.to_json())
        count = 0
        for each in found:
            count += 1
            yield _line({each.kind: each.value})
        # Without it, what was cut off between two lines would look whole.
        yield _line({_END: count})


def read_lines(lines: Iterable[bytes]) -> Iterator[AccountRecords | Line]:
    """Yield what lines say, the strict inverse of `AccountRecords.lines`, of one window or several.

    Args:
        lines: each with its LF, of a file or an answer; values are not looked into.

    Raises:
        MalformedError: not such lines, or some are missing; if need be after lines that came
            before.
    """
    begun, ended, count = False, True, 0
    for number, line in enumerate(lines, 1):
        value = _value(line, f"line {number}")
        if ended:
            begun, ended, count = True, False, 0
            yield AccountRecords.from_json(value, f"line {number}")
        elif line == _line({_END: count}):
            ended = True
        else:
            count += 1
            yield _found(value, count, f"line {number}")
    if not (begun and ended):
        raise MalformedError("cut off", where="account records", expected='a last line {"end": n}')


def _found(value: dict[str, Any], count: int, where: str) -> Line:
    if len(value) == 1:
        for kind in KINDS & value.keys():
            return Line(kind, value[kind])
    expected = f"one of {', '.join(sorted(KINDS))}, or the end of {count - 1}"
    raise MalformedError("no such line here", where=where, expected=expected)


def _line(value: Mapping[str, Any]) -> bytes:
    return canonical_json.dumps(value) + b"\n"


def _value(line: bytes, where: str) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise MalformedError("a line that does not end", where=where)
    value = canonical_json.loads(line[:-1])
    if not isinstance(value, dict):
        raise MalformedError("not an object", where=where)
    return value
