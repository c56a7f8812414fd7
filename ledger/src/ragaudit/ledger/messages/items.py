"""The items of evidence: their names, and what the verifier's service writes into some of them.

docs/spec/10-verdict.md §10.1.

The opening, the window before, and what only its clock says. The audit, and whoever repeats it from
a bundle, reads them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES, VerifierKey
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.kernel import MAX_TIME

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


@dataclass(frozen=True, slots=True)
class OpeningItem(JsonMessage):
    """`public/opening.json`: the log's entry 0, as countersigned.

    Attributes:
        salt: 32 bytes.
        body: at most 2^20 bytes.
    """

    MEMBERS: ClassVar[str] = "salt body"
    WHERE: ClassVar[str] = "opening"

    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {"salt": self.salt.hex(), "body": self.body.hex()}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(f.hex("salt", SALT_BYTES), f.hex("body", limit=MAX_OPENING_BYTES))


@dataclass(frozen=True, slots=True)
class PreviousWindow(JsonMessage):
    """`public/previous.json`: the window whose final checkpoint the policy names.

    Attributes:
        log, cosigner: its keys.
        final: its final checkpoint, a cosigned note; None before its close.
    """

    MEMBERS: ClassVar[str] = "log cosigner final_checkpoint"
    WHERE: ClassVar[str] = "previous window"

    log: VerifierKey
    cosigner: VerifierKey
    final: bytes | None

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

    def _members(self) -> dict[str, Any]:
        return {
            "log": str(self.log),
            "cosigner": str(self.cosigner),
            "final_checkpoint": None if self.final is None else self.final.decode(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        final = None
        if f.raw("final_checkpoint") is not None:
            final = f.text("final_checkpoint", 0, MAX_NOTE_BYTES).encode()
        log, cosigner = (VerifierKey.parse(f.text(name, 1, 512)) for name in ("log", "cosigner"))
        return cls(log, cosigner, final)


@dataclass(frozen=True, slots=True)
class Clock(JsonMessage):
    """Times of receipt, in Unix milliseconds.

    Attributes:
        responses: when each response was received, by leaf index.
        claims: when each claim was taken, by the identity of its promise (32 bytes).
        close, records: when the window was closed and its log handed over, None if never.
    """

    MEMBERS: ClassVar[str] = "responses claims close records"
    WHERE: ClassVar[str] = "clock"

    responses: Mapping[int, int]
    claims: Mapping[bytes, int]
    close: int | None
    records: int | None

    def _members(self) -> dict[str, Any]:
        return {
            "responses": {str(index): time for index, time in self.responses.items()},
            "claims": {identity.hex(): time for identity, time in self.claims.items()},
            "close": self.close,
            "records": self.records,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        responses, claims = _times(f, "responses"), _times(f, "claims")
        return cls(
            {_index(f, index): time for index, time in responses.items()},
            {_identity(f, identity): time for identity, time in claims.items()},
            f.optional(f.integer, "close", 0, MAX_TIME),
            f.optional(f.integer, "records", 0, MAX_TIME),
        )


def _times(f: Fields, name: str) -> dict[str, int]:
    value = f.raw(name)
    if not isinstance(value, dict):
        raise f.error(name, "not an object")
    # The names are data here, so all of them are expected; `_index` and `_identity` read them.
    times = Fields(value, " ".join(value), MalformedRecord, f.path(name))
    return {key: times.integer(key, 0, MAX_TIME) for key in value}


def _index(f: Fields, text: str) -> int:
    # One spelling of a number: two keys for one record would let a reader choose its time.
    canonical = text.isascii() and text.isdecimal() and len(text) < 20
    if not canonical or str(int(text)) != text:
        raise f.error("responses", "not a leaf index", expected="its decimal digits")
    return int(text)


def _identity(f: Fields, text: str) -> bytes:
    try:
        return hex_decode(text, DIGEST_BYTES)
    except MalformedError as error:
        raise f.error("claims", error.what, expected=error.expected) from error
