"""The items of evidence: their names, and what the verifier's service writes into some of them.

docs/spec/10-verdict.md §10.1.

The opening, the window before, and what only its clock says. The audit, and whoever repeats it from
a bundle, reads them.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.kernel import (
    MAX_TIME,
    Converted,
    Digest,
    Hex,
    Integer,
    MapOf,
    Message,
    Milliseconds,
    Text,
    Vkey,
)

PUBLIC: Final = "public/"
CONFIDENTIAL: Final = "confidential/"

POLICY: Final = "public/policy.json"
EMBEDDER: Final = "public/embedder.json"
COUNTERSIGNATURE: Final = "public/countersignature.json"
ACTIVATIONS: Final = "public/activations.json"
RECEIPTS_LIST: Final = "public/receipts-list.json"
EMPTY_CHECKPOINT: Final = "public/empty-checkpoint.txt"
FINAL_CHECKPOINT: Final = "public/final-checkpoint.txt"
OPENING: Final = "public/opening.json"
ENTRIES: Final = "public/entries.json"
LEAVES: Final = "public/leaves.bin"
CHECKPOINTS: Final = "public/checkpoints.json"
RECEIPTS: Final = "public/receipts.json"
REFUSALS: Final = "public/refusals.json"
CLOCK: Final = "public/clock.json"
TERMS: Final = "public/terms.json"
STATEMENTS: Final = "public/statements.json"
JUDGED: Final = "public/judged.json"
PREVIOUS: Final = "public/previous.json"
OVERLAPS: Final = "public/overlaps.json"
COSIGNED: Final = "public/cosigned.json"
TIME_STAMPS: Final = "public/time-stamps.json"
STAMP_ROOTS: Final = "public/time-stamp-roots.pem"
TEST_RESULTS: Final = "public/test-results.json"
RECORDS: Final = "confidential/records.bin"
CLAIMS: Final = "confidential/claims.json"
DISPUTES: Final = "confidential/disputes.json"
CHALLENGE: Final = "confidential/challenge.json"

RESPONSES: Final = CONFIDENTIAL + "responses/"
INDEXES: Final = PUBLIC + "index/"
BUDGETS: Final = PUBLIC + "budgets/"
REPLAYS: Final = CONFIDENTIAL + "replays/"
ROWS: Final = CONFIDENTIAL + "rows/"

FIXED: Final = frozenset(
    {
        POLICY,
        EMBEDDER,
        COUNTERSIGNATURE,
        ACTIVATIONS,
        RECEIPTS_LIST,
        EMPTY_CHECKPOINT,
        FINAL_CHECKPOINT,
        OPENING,
        ENTRIES,
        LEAVES,
        CHECKPOINTS,
        RECEIPTS,
        REFUSALS,
        CLOCK,
        TERMS,
        STATEMENTS,
        JUDGED,
        PREVIOUS,
        OVERLAPS,
        COSIGNED,
        TIME_STAMPS,
        STAMP_ROOTS,
        TEST_RESULTS,
        RECORDS,
        CLAIMS,
        DISPUTES,
        CHALLENGE,
    }
)
# Names are paths that a re-check may unpack: no dots, no folders but these, no leading zeros.
_INDEX = re.compile(
    r"public/index/([a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?)/([1-9][0-9]{0,9})\.bin", re.ASCII
)
_OF_TENANT = re.compile(
    r"(?:public/budgets|confidential/rows)/[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?\.bin", re.ASCII
)
_RESPONSE = re.compile(r"confidential/(?:responses|replays)/(?:0|[1-9][0-9]{0,18})\.bin", re.ASCII)


def index_name(tenant: str, version: int = 1) -> str:
    """Return the name of the item that holds a version of a tenant's index commitment."""
    return f"{INDEXES}{tenant}/{version}.bin"


def index_place(name: str) -> tuple[str, int] | None:
    """Return tenant and version of an item that `index_name` names; None for any other name."""
    found = _INDEX.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def response_name(index: int) -> str:
    """Return the name of the item that holds the response for the record at a leaf index."""
    return f"{RESPONSES}{index}.bin"


def budget_name(tenant: str) -> str:
    """Return the name of the item that holds a tenant's budget argument."""
    return f"{BUDGETS}{tenant}.bin"


def replay_name(index: int) -> str:
    """Return the name of the item that holds the replay of the charge at a leaf index."""
    return f"{REPLAYS}{index}.bin"


def rows_name(tenant: str) -> str:
    """Return the name of the item that opens the sampled rows of a tenant's index."""
    return f"{ROWS}{tenant}.bin"


def check_name(name: str) -> None:
    """Check that ``name`` is one that evidence can have.

    Raises:
        MalformedError: any other text.
    """
    # A closed list: a name that no check reads would be evidence that nobody judges.
    shaped = (_INDEX, _RESPONSE, _OF_TENANT)
    if not (name in FIXED or any(shape.fullmatch(name) for shape in shaped)):
        raise MalformedError(
            f"no evidence item is called {name[:80]!r}", expected="a name of spec 10.1"
        )


class OpeningItem(Message, where="opening"):
    """`public/opening.json`: the log's entry 0, as countersigned.

    Attributes:
        salt: 32 bytes.
        body: at most 2^20 bytes.
    """

    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)] = field(repr=False)


class PreviousWindow(Message, where="previous window"):
    """`public/previous.json`: the window whose final checkpoint the policy names.

    Attributes:
        log, cosigner: its keys.
        final_checkpoint: of it, a cosigned note; None before its close.
    """

    log: Vkey
    cosigner: Vkey
    final_checkpoint: Annotated[str, Text(0, MAX_NOTE_BYTES)] | None

    def head(self, note: bytes) -> TreeHead:
        """Return the head of a checkpoint of its log.

        Args:
            note: the checkpoint, as the policy names it or as its close left it.

        Raises:
            RagauditError: not a checkpoint that log and cosigner signed.
        """
        # The cosigner's too: with the log key alone a provider could make up another end of that
        # window for the new policy to continue.
        cosigners = CosignerPolicy((self.cosigner,), 1)
        return verify_cosigned(note, self.log, cosigners).signed.head


def _leaf_index(digits: str) -> int:
    # One spelling of a number: two keys for one record would let a reader choose its time.
    if not digits.isascii() or not digits.isdecimal() or str(int(digits)) != digits:
        raise MalformedError("not a leaf index", expected="its decimal digits")
    return int(digits)


LEAF_INDEX: Final = Converted(Text(1, 19), _leaf_index, str, "leaf index")
TIME: Final = Integer(0, MAX_TIME, "Unix milliseconds")


class Clock(Message, where="clock"):
    """Times of receipt, in Unix milliseconds.

    Attributes:
        responses: when each response was received, by leaf index.
        claims: when each claim was taken, by the identity of its promise (32 bytes).
        close, records: when the window was closed and its log handed over, None if never.
    """

    responses: Annotated[Mapping[int, int], MapOf(LEAF_INDEX, TIME)]
    claims: Annotated[Mapping[bytes, int], MapOf(Hex(DIGEST_BYTES), TIME)]
    close: Milliseconds | None
    records: Milliseconds | None
