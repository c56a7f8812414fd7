"""The evidence of a window: named byte strings (docs/spec/10-verdict.md §10.1).

Every byte that the procedure looks at is an item here, so that a verdict can name the digests of
its inputs and anyone who has the items can run the procedure again. Items are read when they are
first asked for: a database, a folder and an archive serve as well as a dictionary. Those that grow
with the number of records are read as files (`Evidence.open`), never as a whole.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.items import PUBLIC, check_name

_PIECE_BYTES = 2**20


class Evidence(Mapping[str, bytes]):
    """A mapping from item names to bytes; reading one may be slow."""

    def __init__(
        self,
        names: Iterable[str],
        read: Callable[[str], bytes],
        open_item: Callable[[str], BinaryIO] | None = None,
    ) -> None:
        """Hold names, and read nothing yet.

        Args:
            names: of the items that there are.
            read: gives the bytes of one of them.
            open_item: gives one of them as a seekable file; where nothing is said, its bytes in
                memory.

        Raises:
            MalformedError: a name outside spec 10.1.
        """
        self._names = tuple(sorted(set(names)))
        for name in self._names:
            check_name(name)
        self._known = frozenset(self._names)
        self._read = read
        self._open = open_item

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
        return cls(
            names, lambda name: (root / name).read_bytes(), lambda name: (root / name).open("rb")
        )

    def __getitem__(self, name: str) -> bytes:
        return self._read(self._checked(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def public(self) -> "Evidence":
        """Return the part that anyone may have."""
        return Evidence((name for name in self if name.startswith(PUBLIC)), self._read, self._open)

    def open(self, name: str) -> BinaryIO:
        """Return an item as a file open for reading at its start; the caller closes it.

        Args:
            name: of an item that there is.

        Raises:
            KeyError: there is no such item.
        """
        return BytesIO(self[name]) if self._open is None else self._open(self._checked(name))

    def digests(self) -> dict[str, str]:
        """Return the hexadecimal SHA-256 of every item, by rising name; reads everything once."""
        return {name: self._digest(name) for name in self}

    def _digest(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.open(name) as file:
            while data := file.read(_PIECE_BYTES):
                digest.update(data)
        return digest.hexdigest()

    def _checked(self, name: str) -> str:
        if name not in self._known:
            raise KeyError(name)
        return name
