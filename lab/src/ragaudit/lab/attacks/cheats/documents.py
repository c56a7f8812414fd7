"""Check documents: lists of documents that are not those of the indexes, and false id keys."""

from dataclasses import replace
from functools import partial
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.accounts import TenantIndex
from ragaudit.lab.scenario.owned import OwnedWindow
from ragaudit.ledger.messages.documents import Documents, Life, document_row
from ragaudit.ledger.messages.sorted_rows import FIRST, LAST, SortedRows


class AltersTheList(OwnedWindow):
    """The list of acme has other rows than its indexes give."""

    def documents(self) -> list[Documents]:
        return [self.altered(body) for body in super().documents()]

    def altered(self, body: Documents) -> Documents:
        """Return the entry with a root over the rows of `listed_rows`.

        Args:
            body: the honest one.
        """
        if body.tenant != "acme":
            return body
        rows = sorted(self.listed_rows())
        tree = SortedRows([FIRST.encode(), *rows, LAST.encode()])
        return replace(body, documents=len(rows), list_root=tree.root)

    def listed_rows(self) -> list[bytes]:
        """Return the rows of acme's list, in any order."""
        lives = self.lives("acme")
        keys = self.committed("acme", self.last_version("acme")).commitment.id_keys
        return [
            document_row(
                keys[32 * at : 32 * at + 32],
                at,
                self.lives_of(at, lives.of(at)),
                lives.row_digest(at),
            ).encode()
            for at in range(lives.count)
        ]

    def lives_of(self, position: int, lives: tuple[Life, ...]) -> tuple[Life, ...]:
        """Return the lives that a row of the list states.

        Args:
            lives: as the indexes give them.
        """
        return lives


class CutsALife(AltersTheList):
    """Document 3 is in both versions, and listed as if it had gone after the first.

    Check 31 (`documents`) finds its lives in the indexes.
    """

    def lives_of(self, position: int, lives: tuple[Life, ...]) -> tuple[Life, ...]:
        return ((1, 1),) if position == 3 else lives


class SaysThatItNeverWas(AltersTheList):
    """Document 6 was in version 1, and is listed as if it had never been live.

    Check 31 (`documents`).
    """

    def lives_of(self, position: int, lives: tuple[Life, ...]) -> tuple[Life, ...]:
        return () if position == 6 else lives


class LeavesADocumentOut(AltersTheList):
    """There is no row for document 3, so that its owner can be told that it never was there.

    Check 31 (`documents`) wants a row for every position.
    """

    def listed_rows(self) -> list[bytes]:
        rows = super().listed_rows()
        return rows[:3] + rows[4:]


class CountsTooFew(OwnedWindow):
    """The lists are whole, and the entry counts a document less.

    Check 31 (`documents`).
    """

    def documents(self) -> list[Documents]:
        return [replace(body, documents=body.documents - 1) for body in super().documents()]


class GivesTwoRowsOneKey(OwnedWindow):
    """Rows 2 and 3 of beta have one id key: which of them is the document's can be said later.

    Check 31 (`documents`) wants keys that differ.
    """

    def key_of(self, tenant: str, position: int, name: str) -> bytes:
        if tenant == "beta" and position == 3:
            return super().key_of(tenant, 2, self.document_id(tenant, 2))
        return super().key_of(tenant, position, name)

    def documents(self) -> list[Documents]:
        # What the list says of beta matters no more.
        first = self.lives("acme").listed().entry
        return [first, replace(first, tenant="beta")]


class ExchangesKeys(OwnedWindow):
    """The second version lists document 3 under the key of document 4, and the other way round.

    Check 31 (`documents`) wants a position to keep its key.
    """

    building: int = 1

    def build_version(self, tenant: str, version: int) -> TenantIndex:
        self.building = version
        return super().build_version(tenant, version)

    def key_of(self, tenant: str, position: int, name: str) -> bytes:
        if self.building > 1 and position in (3, 4):
            name = self.document_id(tenant, 7 - position)
        return super().key_of(tenant, position, name)

    def documents(self) -> list[Documents]:
        # Whatever it says of acme: no list fits both versions.
        second = self.lives("beta").listed().entry
        return [replace(second, tenant="acme"), second]


class LogsNoLists(OwnedWindow):
    """The policy promises document lists, and the log ends without them.

    Check 31 (`documents`).
    """

    def log_documents(self) -> None:
        pass


constructed = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("documents",),
    why="nothing stops a service; evidence made without one shows it in a second",
)

CHEATS: Final = (
    constructed(
        name="life-cut",
        description="Lists a document that is there as gone since the second version.",
        window=CutsALife,
        reason="other documents or lives",
    ),
    constructed(
        name="life-denied",
        description="Lists a document that was there as one that never was.",
        window=SaysThatItNeverWas,
        reason="other documents or lives",
    ),
    constructed(
        name="document-left-unlisted",
        description="Leaves a document out of the list at the end of the log.",
        window=LeavesADocumentOut,
        reason="documents, the index has",
    ),
    constructed(
        name="documents-undercounted",
        description="Counts a document less than the list has.",
        window=CountsTooFew,
        reason="documents, the index has",
    ),
    constructed(
        name="one-key-for-two-documents",
        description="Lists two rows under the key of one document, for two stories.",
        window=GivesTwoRowsOneKey,
        reason="one id key twice",
    ),
    constructed(
        name="keys-exchanged-in-a-version",
        description="Exchanges the keys of two documents in a later version of an index.",
        window=ExchangesKeys,
        reason="another id key",
    ),
    constructed(
        name="document-lists-missing",
        description="Closes the log without the document lists that the policy promises.",
        window=LogsNoLists,
        reason="does not end with one document list each",
    ),
)
