"""The evidence of a window: named byte strings (docs/spec/10-verdict.md §10.1).

Every byte that the procedure looks at is an item here, so that a verdict can name the digests of
its inputs and anyone who has the items can run the procedure again. Items are read when they are
first asked for: a database, a folder and an archive serve as well as a dictionary.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ragaudit.encoding.errors import MalformedError

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
RECORDS: Final = "confidential/records.bin"
CLAIMS: Final = "confidential/claims.json"
DISPUTES: Final = "confidential/disputes.json"
CHALLENGE: Final = "confidential/challenge.json"

RESPONSES: Final = CONFIDENTIAL + "responses/"

_FIXED: Final = frozenset(
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
        RECORDS,
        CLAIMS,
        DISPUTES,
        CHALLENGE,
    }
)
# Names are paths that a re-check may unpack: no dots, no folders but these, no leading zeros.
_INDEX = re.compile(r"public/index/[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?/1\.bin", re.ASCII)
_RESPONSE = re.compile(r"confidential/responses/(?:0|[1-9][0-9]{0,18})\.bin", re.ASCII)


def index_name(tenant: str) -> str:
    """Return the name of the item that holds a tenant's index commitment (version 1)."""
    return f"public/index/{tenant}/1.bin"


def response_name(index: int) -> str:
    """Return the name of the item that holds the response for the record at a leaf index."""
    return f"{RESPONSES}{index}.bin"


def check_name(name: str) -> None:
    """Check that ``name`` is one that evidence can have.

    Raises:
        MalformedError: any other text.
    """
    if not (name in _FIXED or _INDEX.fullmatch(name) or _RESPONSE.fullmatch(name)):
        raise MalformedError(
            f"no evidence item is called {name[:80]!r}", expected="a name of spec 10.1"
        )


class Evidence(Mapping[str, bytes]):
    """A mapping from item names to bytes; reading one may be slow."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes]) -> None:
        """Hold names, and read nothing yet.

        Args:
            names: of the items that there are.
            read: gives the bytes of one of them.

        Raises:
            MalformedError: a name outside spec 10.1.
        """
        self._names = tuple(sorted(set(names)))
        for name in self._names:
            check_name(name)
        self._known = frozenset(self._names)
        self._read = read

    @classmethod
    def of(cls, items: Mapping[str, bytes]) -> "Evidence":
        """Return evidence in memory: a copy of ``items``."""
        copy = dict(items)
        return cls(copy, copy.__getitem__)

    @classmethod
    def from_directory(cls, root: Path) -> "Evidence":
        """Return evidence in the files below ``root``.

        Raises:
            MalformedError: a link, or a file with another name than spec 10.1 has.
        """
        names = []
        for path in root.rglob("*"):
            # A link would let whoever packed the folder name any file of this machine.
            if path.is_symlink():
                raise MalformedError("a link among the evidence", where=path.name)
            if path.is_file():
                names.append(path.relative_to(root).as_posix())
        return cls(names, lambda name: (root / name).read_bytes())

    def __getitem__(self, name: str) -> bytes:
        if name not in self._known:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def public(self) -> "Evidence":
        """Return the part that anyone may have."""
        return Evidence((name for name in self if name.startswith(PUBLIC)), self._read)

    def digests(self) -> dict[str, str]:
        """Return the hexadecimal SHA-256 of every item, by rising name; reads everything once."""
        return {name: hashlib.sha256(self[name]).hexdigest() for name in self}
