"""Check rows: indexes whose rows are not what their documents say, and openings that hide it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.accounts import TenantIndex
from ragaudit.lab.scenario.owned_rows import AllPrivateRowsWindow, AllRowsWindow
from ragaudit.lab.scenario.versions import Row
from ragaudit.ledger.messages.documents import id_key
from ragaudit.ledger.messages.sampled_rows import RowsHead, SampledRow, encode_rows

_ROW: Final = 4  # in which the cheats lie


class SampledWhole(AllRowsWindow):
    """A window whose rows can be changed before they are committed to."""

    def changed(self, vectors: npt.NDArray[np.int16]) -> None:
        """Change integers [N, d] before they are completed to norm B: nothing here."""

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        honest = super().completed_rows(rows)
        vectors = honest[:, :-4].copy()
        self.changed(vectors)
        return core.complete_rows(vectors, self.policy.squared_norm).astype(np.int16)


class ShortensARow(SampledWhole):
    """A row is committed to at a tenth of its length, so that no question finds its document.

    Check 32 (`rows`). No argument says more than that a row has norm B together with its four
    squares.
    """

    def changed(self, vectors: npt.NDArray[np.int16]) -> None:
        vectors[_ROW] //= 10


class SwapsAVector(SampledWhole):
    """A row has the vector of another document's text, so that other questions find it.

    Check 32 (`rows`).
    """

    def changed(self, vectors: npt.NDArray[np.int16]) -> None:
        vectors[_ROW] = vectors[_ROW + 1]


class SwapsAVectorUnderNoise(SwapsAVector, AllPrivateRowsWindow):
    """The same in a window with noise."""

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        return super().completed_rows(rows).astype(np.int8).astype(np.int16)


class NullsARowAtOnce(SampledWhole):
    """The first version has a null row: a document that is counted, and that nobody ever finds.

    Check 32 (`rows`): a new index has none.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        rows[_ROW] = replace(rows[_ROW], deleted=True)
        return rows


class MarksALivingRow(SampledWhole):
    """The last version marks a row as deleted that holds its document, and hides it.

    Check 32 (`rows`): what is marked is a null row.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        if version > 1:
            rows[_ROW] = replace(rows[_ROW], marked=True)
        return rows


class GivesAnotherIdKey(SampledWhole):
    """A row stands in the document list under the key of an id that nobody has.

    Check 32 (`rows`): the owner would be told that the document is not there, and an account could
    not be served it. Check 31 compares keys with each other only.
    """

    def key_of(self, tenant: str, position: int, name: str) -> bytes:
        if position == _ROW:
            secret = self.document_secrets[tenant]
            return id_key(self.window, tenant, secret, f"not {name}")
        return super().key_of(tenant, position, name)


class OpensOtherContent(SampledWhole):
    """The text that is opened is not the one that was committed to.

    Check 32 (`rows`): a better text would hide what the index holds.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        row = super().open_row(index, position)
        return replace(row, content="a harmless text") if position == _ROW else row


class OpensOtherAttributes(SampledWhole):
    """The attributes that are opened are not those that were committed to.

    Check 32 (`rows`).
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        row = super().open_row(index, position)
        return replace(row, attributes="") if position == _ROW else row


class OpensAnotherRow(SampledWhole):
    """In the place of a sampled row another one is opened, which is in order.

    Check 32 (`rows`): a row opens the leaf at its own position.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        if position != _ROW:
            return super().open_row(index, position)
        return replace(super().open_row(index, position + 1), position=position)


class AnswersWithAnotherPosition(SampledWhole):
    """In the place of a sampled row another one is opened, under its own position.

    Check 32 (`rows`): the sample says which rows are opened.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        return super().open_row(index, position + (position == _ROW))


class HidesUnderAnotherDigest(SampledWhole):
    """A document is said to have changed since, with the digest of another content.

    Check 32 (`rows`): without its content a row still opens its row digest.
    """

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        row = super().open_row(index, position)
        if position != _ROW:
            return row
        return replace(row, content=None, attributes=None, content_digest=bytes(32))


class ShowsAnotherSecret(SampledWhole):
    """Rows are opened under a document secret that the opening does not commit to.

    Check 32 (`rows`).
    """

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        index = self.sampled_index(tenant)
        head = RowsHead(tenant, index.version, b"s" * 32)
        return encode_rows(head, [self.open_row(index, at) for at in positions])


class OpensAnEarlierVersion(SampledWhole):
    """The rows of acme are opened as the version before the last has them.

    Check 32 (`rows`): what the last version holds is what is sampled.
    """

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        index = self.committed(tenant, 1)
        head = RowsHead(tenant, index.version, self.document_secrets[tenant])
        known = [at for at in positions if at < len(index.ids)]
        padded = known + [0] * (len(positions) - len(known))
        return encode_rows(head, [self.open_row(index, at) for at in padded])


class LeavesARowOut(SampledWhole):
    """A sampled row is not opened at all.

    Check 32 (`rows`).
    """

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        return super().open_rows(tenant, [at for at in positions if at != _ROW])


class OpensNothing(SampledWhole):
    """Nothing is handed over for the sampled rows of beta.

    Check 32 (`rows`).
    """

    def items(self) -> dict[str, bytes]:
        return {
            name: data
            for name, data in super().items().items()
            if not name.endswith("rows/beta.bin")
        }


row = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("rows",),
    why="nothing stops a service; evidence made without one shows it in a second",
)

CHEATS: Final = (
    row(
        name="row-shortened",
        description="Commits to a row at a tenth of its length.",
        window=ShortensARow,
        reason="committed at 0.10 of its length",
    ),
    row(
        name="row-with-another-vector",
        description="Commits to a row with the vector of another text.",
        window=SwapsAVector,
        reason="away from that of its text",
    ),
    row(
        name="row-with-another-vector-under-noise",
        description="The same in a window with noise.",
        window=SwapsAVectorUnderNoise,
        reason="away from that of its text",
        slow=True,
    ),
    row(
        name="null-row-from-the-start",
        description="Commits to a null row in a new index.",
        window=NullsARowAtOnce,
        reason="a null row in the first version",
    ),
    row(
        name="living-row-marked",
        description="Marks a row as deleted that holds its document.",
        window=MarksALivingRow,
        reason="marked as deleted, and it holds a document",
    ),
    row(
        name="row-under-another-id-key",
        description="Gives a row the id key of another id.",
        window=GivesAnotherIdKey,
        reason="its id key is that of another id",
    ),
    row(
        name="row-opened-with-another-text",
        description="Opens a row with a text that was not committed to.",
        window=OpensOtherContent,
        reason="content and attributes are not the committed ones",
    ),
    row(
        name="row-opened-with-other-attributes",
        description="Opens a row with attributes that were not committed to.",
        window=OpensOtherAttributes,
        reason="content and attributes are not the committed ones",
    ),
    row(
        name="row-of-another-position",
        description="Opens another row in the place of a sampled one.",
        window=OpensAnotherRow,
        reason="its vector does not open its commitment",
    ),
    row(
        name="row-not-asked-for",
        description="Opens another row than the sampled one.",
        window=AnswersWithAnotherPosition,
        reason="is opened",
    ),
    row(
        name="changed-row-under-another-digest",
        description="Says that a document changed since, of a content that was never committed to.",
        window=HidesUnderAnotherDigest,
        reason="its id and content do not open its row digest",
    ),
    row(
        name="rows-under-another-secret",
        description="Opens rows under another document secret.",
        window=ShowsAnotherSecret,
        reason="not the committed document secret",
    ),
    row(
        name="rows-of-an-earlier-version",
        description="Opens rows of the version before the last.",
        window=OpensAnEarlierVersion,
        reason="expected the last version",
    ),
    row(
        name="row-left-out",
        description="Leaves a sampled row out.",
        window=LeavesARowOut,
        reason="wrong tag or field count",
    ),
    row(
        name="rows-not-opened",
        description="Opens no row of a tenant.",
        window=OpensNothing,
        reason="is missing",
    ),
)
