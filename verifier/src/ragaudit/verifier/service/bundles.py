"""Bundles of decided windows, as downloads that may be interrupted (docs/spec/08-services.md §8.3).

A bundle is made while it is sent, block by block. What it takes to begin anywhere in it, sizes and
digests of its items, is kept for the windows that were asked about last.
"""

import hashlib
import threading
from collections import OrderedDict
from urllib.parse import quote

from ragaudit.encoding.errors import NotFound
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.messages.evidence_access import BUNDLE
from ragaudit.ledger.messages.items import CONFIDENTIAL, PUBLIC
from ragaudit.serving.bodies import Resumable
from ragaudit.verifier.bundle import Archive, Part
from ragaudit.verifier.service import accesses, evidence, windows
from ragaudit.verifier.service.database import Database, Origin

MOST_KEPT = 4
RESUMABLE_MS = 24 * 3600 * 1000


class Bundles:
    """Makes the bundles of decided windows. Safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[tuple[Origin, Part], tuple[bytes, Archive]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, origin: Origin, part: Part) -> Resumable:
        """Return the bundle of a window.

        Args:
            part: "public" leaves out every confidential item.

        Raises:
            NotFound: there is no verdict yet.
        """
        archive = self._archive(origin, part)
        return Resumable(archive.size, archive.tag, archive.pieces)

    def place(self, origin: Origin, number: int) -> str:
        """Return the path at which a download goes on that an access began.

        Args:
            number: of the access.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
        path = f"/v1/windows/{quote(window.name, safe='')}/bundle/confidential/{number}"
        return f"{path}?provider={quote(window.provider, safe='')}"

    def demand_opened(self, origin: Origin, number: int) -> None:
        """Check that an access opened the whole bundle within the last day.

        Args:
            number: of the access.

        Raises:
            NotFound: no such access, or too long ago: whoever still needs the bundle opens it anew.
        """
        with self._database.read() as connection:
            windows.get(connection, origin)
            known = number < accesses.count(connection, origin)
            access = accesses.read(connection, origin, number) if known else None
        if access is None or access.what != BUNDLE:
            raise NotFound("no such access to the bundle", where=str(number))
        if self._database.now() >= access.time + RESUMABLE_MS:
            raise NotFound("opened more than a day ago", where=str(number), expected="open it anew")

    def _archive(self, origin: Origin, part: Part) -> Archive:
        signed = evidence.verdict(self._database, origin)
        state = self._state(origin, signed)
        key = origin, part
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == state:
                self._kept.move_to_end(key)
                return kept[1]
        # Not under the lock: it reads every item, and others ask for other windows.
        archive = Archive.of(evidence.stored(self._database, origin), signed, part=part)
        with self._lock:
            self._kept[key] = state, archive
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return archive

    def _state(self, origin: Origin, signed: bytes) -> bytes:
        """Digest of verdict and items as they are now: confidential ones may have been deleted."""
        digest = hashlib.sha256(signed)
        with self._database.read() as connection:
            for item in windows.list_items(connection, origin):
                if item.name.startswith((PUBLIC, CONFIDENTIAL)):
                    digest.update(enc("item", item.name, item.digest))
        return digest.digest()
