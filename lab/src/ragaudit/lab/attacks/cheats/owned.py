"""Checks accounts, documents and rows: what the owner of documents or of an account is told."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.integrity import Row
from ragaudit.lab.scenario.opening import TenantIndex
from ragaudit.lab.scenario.owned import (
    AllPrivateRowsWindow,
    AllRowsWindow,
    IndexedWindow,
    OwnedWindow,
)
from ragaudit.ledger.messages.accounts import AccountIndex
from ragaudit.ledger.messages.commitments import RowsHead, SampledRow, encode_rows
from ragaudit.ledger.messages.documents import Life, document_row, id_key
from ragaudit.ledger.messages.entries import Documents
from ragaudit.ledger.messages.sorted_rows import FIRST, LAST, KeyedRow, SortedRows

# --- the account index ---------------------------------------------------------------------------


def with_rows(index: AccountIndex, rows: list[KeyedRow]) -> AccountIndex:
    """Return an index with other rows, whose openings nobody has."""
    return AccountIndex(index.window, rows, {})


counted = partial(ConstructedCheat, family="INTEGRITY", checks=("accounts",))


@counted("record-left-uncounted", reason="other records, or another order")
class CountsARecordLess(IndexedWindow):
    """States one record less of an account than the log has.

    The last record of bob is not among his.

    Check 22 (`accounts`) computes every row again.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        pseudonym = self.accounts["bob"].pseudonym
        opening = index.opening(pseudonym)
        (proven,) = index.prove(pseudonym)
        assert opening is not None
        fewer = replace(opening, records=opening.records[:-1])
        rows = list(index.rows)
        rows[proven.position] = replace(proven.row, digest=fewer.digest)
        return with_rows(index, rows)


@counted("account-left-uncounted", reason="counts 3 accounts, the log has 4")
class LeavesAnAccountOut(IndexedWindow):
    """Leaves an account out of the account index.

    It is carol, who can then be told that she never asked.

    Check 22 (`accounts`) wants a row for every account.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        (proven,) = index.prove(self.accounts["carol"].pseudonym)
        return with_rows(index, [row for row in index.rows if row != proven.row])


@counted("accounts-out-of-order", reason="other records, or another order")
class SwapsTwoRows(IndexedWindow):
    """Sorts the account index so that it denies an account that it holds.

    Two rows have changed places: their neighbours deny the accounts between them.

    Check 22 (`accounts`) wants the rows in the order of their keys.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        rows = list(index.rows)
        rows[1], rows[2] = rows[2], rows[1]
        return with_rows(index, rows)


@counted("account-counted-twice", reason="other records, or another order")
class DoublesARow(IndexedWindow):
    """Gives an account two rows in the account index, for two stories.

    That account may be shown either; the row of another account is left out for it.

    Check 22 (`accounts`) wants keys that rise strictly.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        rows = list(index.rows)
        rows[2] = replace(rows[1], digest=rows[2].digest)
        return with_rows(index, rows)


@counted("account-index-missing", reason="no account index")
class LogsNoIndex(IndexedWindow):
    """Closes the log without the account index that the policy promises.

    Check 22 (`accounts`) wants it right before the close.
    """

    def log_accounts(self, index: AccountIndex) -> None:
        pass


# --- document lists ------------------------------------------------------------------------------

listed = partial(ConstructedCheat, family="INTEGRITY", checks=("documents",))


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


@listed("life-cut", reason="other documents or lives")
class CutsALife(AltersTheList):
    """Lists a document that is there as gone since the second version.

    It is document 3, which is in both versions.

    Check 31 (`documents`) finds its lives in the indexes.
    """

    def lives_of(self, position: int, lives: tuple[Life, ...]) -> tuple[Life, ...]:
        return ((1, 1),) if position == 3 else lives


@listed("life-denied", reason="other documents or lives")
class SaysThatItNeverWas(AltersTheList):
    """Lists a document that was there as one that never was.

    It is document 6, which was in version 1.

    Check 31 (`documents`).
    """

    def lives_of(self, position: int, lives: tuple[Life, ...]) -> tuple[Life, ...]:
        return () if position == 6 else lives


@listed("document-left-unlisted", reason="documents, the index has")
class LeavesADocumentOut(AltersTheList):
    """Leaves a document out of the list at the end of the log.

    It is document 3, whose owner can then be told that it never was there.

    Check 31 (`documents`) wants a row for every position.
    """

    def listed_rows(self) -> list[bytes]:
        rows = super().listed_rows()
        return rows[:3] + rows[4:]


@listed("documents-undercounted", reason="documents, the index has")
class CountsTooFew(OwnedWindow):
    """Counts a document less than the list has.

    The lists are whole: only the entry's count is wrong.

    Check 31 (`documents`).
    """

    def documents(self) -> list[Documents]:
        return [replace(body, documents=body.documents - 1) for body in super().documents()]


@listed("one-key-for-two-documents", reason="one id key twice")
class GivesTwoRowsOneKey(OwnedWindow):
    """Lists two rows under the key of one document, for two stories.

    They are rows 2 and 3 of beta; which one is the document's can be said later.

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


@listed("keys-exchanged-in-a-version", reason="another id key")
class ExchangesKeys(OwnedWindow):
    """Exchanges the keys of two documents in a later version of an index.

    They are documents 3 and 4, in the second version.

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


@listed("document-lists-missing", reason="does not end with one document list each")
class LogsNoLists(OwnedWindow):
    """Closes the log without the document lists that the policy promises.

    Check 31 (`documents`).
    """

    def log_documents(self) -> None:
        pass


# --- sampled rows --------------------------------------------------------------------------------

_ROW: Final = 4  # in which the cheats lie


row = partial(ConstructedCheat, family="INTEGRITY", checks=("rows",))


class SampledWhole(AllRowsWindow):
    """A window whose rows can be changed before they are committed to."""

    def changed(self, vectors: npt.NDArray[np.int16]) -> None:
        """Change integers [N, d] before they are completed to norm B: nothing here."""

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        honest = super().completed_rows(rows)
        vectors = honest[:, :-4].copy()
        self.changed(vectors)
        return core.complete_rows(vectors, self.policy.squared_norm).astype(np.int16)


@row("row-shortened", reason="committed at 0.10 of its length")
class ShortensARow(SampledWhole):
    """Commits to a row at a tenth of its length.

    So no question finds its document.

    Check 32 (`rows`). No argument says more than that a row has norm B together with its four
    squares.
    """

    def changed(self, vectors: npt.NDArray[np.int16]) -> None:
        vectors[_ROW] //= 10


@row("row-with-another-vector", reason="away from that of its text")
class SwapsAVector(SampledWhole):
    """Commits to a row with the vector of another text.

    The text is another document's, so that other questions find the row.

    Check 32 (`rows`).
    """

    def changed(self, vectors: npt.NDArray[np.int16]) -> None:
        vectors[_ROW] = vectors[_ROW + 1]


@row("row-with-another-vector-under-noise", reason="away from that of its text", slow=True)
class SwapsAVectorUnderNoise(SwapsAVector, AllPrivateRowsWindow):
    """Commits to a row with the vector of another text, in a window with noise."""

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        return super().completed_rows(rows).astype(np.int8).astype(np.int16)


@row("null-row-from-the-start", reason="a null row in the first version")
class NullsARowAtOnce(SampledWhole):
    """Commits to a null row in a new index.

    Its document is counted, and nobody ever finds it.

    Check 32 (`rows`): a new index has none.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        rows[_ROW] = replace(rows[_ROW], deleted=True)
        return rows


@row("living-row-marked", reason="marked as deleted, and it holds a document")
class MarksALivingRow(SampledWhole):
    """Marks a row as deleted that holds its document.

    The mark is in the last version, and hides the row.

    Check 32 (`rows`): what is marked is a null row.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        if version > 1:
            rows[_ROW] = replace(rows[_ROW], marked=True)
        return rows


@row("row-under-another-id-key", reason="its id key is that of another id")
class GivesAnotherIdKey(SampledWhole):
    """Gives a row the id key of another id.

    Nobody has that id, and the document list has its key.

    Check 32 (`rows`): the owner would be told that the document is not there, and an account could
    not be served it. Check 31 compares keys with each other only.
    """

    def key_of(self, tenant: str, position: int, name: str) -> bytes:
        if position == _ROW:
            secret = self.document_secrets[tenant]
            return id_key(self.window, tenant, secret, f"not {name}")
        return super().key_of(tenant, position, name)


@row("row-opened-with-another-text", reason="content and attributes are not the committed ones")
class OpensOtherContent(SampledWhole):
    """Opens a row with a text that was not committed to.

    Check 32 (`rows`): a better text would hide what the index holds.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        row = super().open_row(index, position)
        return replace(row, content="a harmless text") if position == _ROW else row


@row("row-opened-with-other-attributes", reason="content and attributes are not the committed ones")
class OpensOtherAttributes(SampledWhole):
    """Opens a row with attributes that were not committed to.

    Check 32 (`rows`).
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        row = super().open_row(index, position)
        return replace(row, attributes="") if position == _ROW else row


@row("row-of-another-position", reason="its vector does not open its commitment")
class OpensAnotherRow(SampledWhole):
    """Opens another row in the place of a sampled one.

    The other row is in order.

    Check 32 (`rows`): a row opens the leaf at its own position.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        if position != _ROW:
            return super().open_row(index, position)
        return replace(super().open_row(index, position + 1), position=position)


@row("row-not-asked-for", reason="is opened")
class AnswersWithAnotherPosition(SampledWhole):
    """Opens another row than the sampled one.

    The other row has its own position.

    Check 32 (`rows`): the sample says which rows are opened.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        return super().open_row(index, position + (position == _ROW))


@row("changed-row-under-another-digest", reason="its id and content do not open its row digest")
class HidesUnderAnotherDigest(SampledWhole):
    """Says that a document changed since, of a content that was never committed to.

    Check 32 (`rows`): without its content a row still opens its row digest.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        row = super().open_row(index, position)
        if position != _ROW:
            return row
        return replace(row, content=None, attributes=None, content_digest=bytes(32))


@row("rows-under-another-secret", reason="not the committed document secret")
class ShowsAnotherSecret(SampledWhole):
    """Opens rows under another document secret.

    The opening does not commit to that one.

    Check 32 (`rows`).
    """

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        index = self.sampled_index(tenant)
        head = RowsHead(tenant, index.version, b"s" * 32)
        return encode_rows(head, [self.open_row(index, at) for at in positions])


@row("rows-of-an-earlier-version", reason="expected the last version")
class OpensAnEarlierVersion(SampledWhole):
    """Opens rows of the version before the last.

    They are rows of acme.

    Check 32 (`rows`): what the last version holds is what is sampled.
    """

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        index = self.committed(tenant, 1)
        head = RowsHead(tenant, index.version, self.document_secrets[tenant])
        known = [at for at in positions if at < len(index.ids)]
        padded = known + [0] * (len(positions) - len(known))
        return encode_rows(head, [self.open_row(index, at) for at in padded])


@row("row-left-out", reason="wrong tag or field count")
class LeavesARowOut(SampledWhole):
    """Leaves a sampled row out.

    Check 32 (`rows`).
    """

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        return super().open_rows(tenant, [at for at in positions if at != _ROW])


@row("rows-not-opened", reason="is missing")
class OpensNothing(SampledWhole):
    """Opens no row of a tenant.

    The tenant is beta.

    Check 32 (`rows`).
    """

    def items(self) -> dict[str, bytes]:
        return {
            name: data
            for name, data in super().items().items()
            if not name.endswith("rows/beta.bin")
        }
