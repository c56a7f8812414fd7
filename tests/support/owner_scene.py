"""A closed window of a tenant with an owner, in memory: what its log and its index prove."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from integrity_scene import NOISE
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    IndexTree,
    content_digest,
    row_digest,
)
from ragaudit.ledger.messages.documents import (
    DocumentLives,
    DocumentProof,
    ListedDocument,
    ProvenIndex,
    ProvenIndexRow,
    RowProof,
    id_commitment,
    id_key,
    id_keys,
)
from ragaudit.ledger.messages.entries import Close, Opening, Version
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ProvenEntry, ProvenOpening
from vector_scripts import VECTORS

VECTOR: dict[str, Any] = json.loads((VECTORS / "owners.json").read_bytes())
TENANT, OTHER = "clinic-a", "clinic-b"
SECRET = b"\x05" * 32
DIMENSION = 3
OWNER = PrivateKey.from_seed(bytes.fromhex(VECTOR["owner_seed"]))


def policy(*, noised: bool = False, **changes: Any) -> Policy:
    value = json.loads(VECTOR["policy"])
    more = {**NOISE, "metric": "cosine", "largest_norm": None} if noised else {}
    return Policy.from_json({**value, **more, **changes})


def stand_in(rows: Sequence[Sequence[int]], blindings: Sequence[bytes]) -> list[bytes]:
    """Digests that stand for commitments: no format depends on what those are."""
    return [
        hashlib.sha256(canonical_json.dumps([list(row), blinding.hex()])).digest()
        for row, blinding in zip(rows, blindings, strict=True)
    ]


def four_squares(number: int) -> tuple[int, ...]:
    """Four numbers whose squares add up to one, the largest first."""

    def found(rest: int, count: int) -> tuple[int, ...] | None:
        if count == 1:
            return (math.isqrt(rest),) if math.isqrt(rest) ** 2 == rest else None
        for each in range(math.isqrt(rest), -1, -1):
            if (more := found(rest - each * each, count - 1)) is not None:
                return (each, *more)
        return None

    made = found(number, 4)
    assert made is not None  # by Lagrange
    return made


@dataclass(frozen=True)
class Held:
    """What a row of a version holds; the text None of a null row.

    `marked` and `listed_as` are what a cheating provider says otherwise.
    """

    id: str
    text: str | None
    vector: tuple[int, ...] | None = None
    marked: bool | None = None
    listed_as: str | None = None


class OwnedWindow:
    """The versions of one tenant's index; the other tenant has one row."""

    def __init__(self, *versions: Sequence[Held], terms: Policy | None = None) -> None:
        self.policy = terms or policy()
        self.log = SigningKey(
            self.policy.origin, ED25519, PrivateKey.from_seed(bytes.fromhex(VECTOR["log_seed"]))
        )
        self.cosigner = SigningKey(
            "regulator.example/cosigner", COSIGNATURE_V1,
            PrivateKey.from_seed(bytes.fromhex(VECTOR["cosigner_seed"])),
        )  # fmt: skip
        self.versions = versions
        self.indexes = [self._index(TENANT, v, rows) for v, rows in enumerate(versions, 1)]
        others = self._index(OTHER, 1, [Held("b-1", "theirs")])
        first = [each.opening() for each in (self.indexes[0], others)]
        tenants = [
            replace(each, id_commitment=id_commitment(self.window, each.tenant, SECRET))
            for each in first
        ]
        opening = Opening(self.policy.digest, bytes(32), b"", tuple(tenants))
        if self.policy.noised:
            opening = replace(opening, seed_root=bytes(32))
        self.lists = {TENANT: self._lists(self.indexes), OTHER: self._lists([others])}
        self.entries: list[tuple[str, bytes]] = [
            (Opening.KIND, opening.encode()),
            *((Version.KIND, self._announced(each)) for each in self.indexes[1:]),
            *(("documents", each.entry.encode()) for each in self.lists.values()),
            (Close.KIND, Close(self.window, 0, 0, 0).encode()),
        ]

    @property
    def window(self) -> str:
        return self.policy.window

    def proven(self, index: int, *, size: int | None = None, signed: bool = True) -> ProvenEntry:
        """An entry under the checkpoint of the first entries, or of all of them."""
        leaves = [leaf_data(bytes(32), kind, body) for kind, body in self.entries[:size]]
        tree = MemoryTree(leaves)
        note = parse_note(
            sign_checkpoint(Checkpoint(self.log.name, tree.head()), self.log).encode()
        )
        if signed:
            note = note.with_signatures([cosign(note.text, self.cosigner, 1_800_090_000)])
        proof = TlogProof(index, tree.inclusion_proof(index), note.encode())
        kind = ProvenEntry if index else ProvenOpening
        return kind.of(bytes(32), self.entries[index][1], proof)

    def index(self, version: int) -> ProvenIndex:
        opening = self.proven(0)
        assert isinstance(opening, ProvenOpening)
        announced = None if version == 1 else self.proven(version - 1)
        return ProvenIndex(self.policy.origin, TENANT, version, SECRET, opening, announced)

    def row(self, version: int, position: int) -> ProvenIndexRow:
        held = self.versions[version - 1][position]
        content, attributes, columns = self._parts(held)
        committed = self.indexes[version - 1]
        keys = (committed.commitments, committed.row_digests, committed.columns, committed.id_keys)
        vector, squares = self._vector(held, position)
        return ProvenIndexRow(
            position=position, id=held.id, content=content, attributes=attributes,
            content_digest=content_digest(content, attributes), columns=columns,
            salt=self._salt(version, position), vector=vector, squares=squares,
            blinding=bytes([position + 1]) + bytes(31),
            commitment=committed.commitments[32 * position : 32 * position + 32],
            path=IndexTree(*keys).path(position),
        )  # fmt: skip

    def row_proof(self, version: int, position: int) -> RowProof:
        return RowProof(self.index(version), self.row(version, position))

    def document_proof(self, name: str) -> DocumentProof:
        made, last = self.lists[TENANT], len(self.versions)
        rows = made.prove(id_key(self.window, TENANT, SECRET, name))
        opening = self.proven(0)
        assert isinstance(opening, ProvenOpening)
        listed, gone, row = None, None, None
        if len(rows) == 1:
            position = made.position(rows[0])
            lives = made.lives(position)
            listed = ListedDocument(position, lives, made.row_digest(position))
            if lives and lives[-1][1] < last:
                gone = self.proven(lives[-1][1])
            row = self.row_proof(last, position) if self.policy.noised else None
        documents = self.proven(last)
        return DocumentProof(
            self.policy.origin, TENANT, name, SECRET, opening, documents, rows, listed, gone, row
        )

    def _lists(self, indexes: Sequence[IndexCommitment]) -> Any:
        lives = DocumentLives(self.window, indexes[0].tenant)
        for each in indexes:
            lives.add(each)
        return lives.listed()

    def _announced(self, index: IndexCommitment) -> bytes:
        said = index.opening()
        return Version(
            self.window, TENANT, said.version, said.rows, said.index_root, said.proof_digest, 0
        ).encode()

    def _index(self, tenant: str, version: int, rows: Sequence[Held]) -> IndexCommitment:
        parts = [self._parts(held) for held in rows]
        completed = [sum(self._vector(held, i), ()) for i, held in enumerate(rows)]
        blindings = [bytes([i + 1]) + bytes(31) for i in range(len(rows))]
        digests = [
            row_digest(self._salt(version, i), held.id, content_digest(*parts[i][:2]))
            for i, held in enumerate(rows)
        ]
        columns = tuple(part[2] for part in parts)
        names = [held.listed_as or held.id for held in rows]
        return IndexCommitment(
            self.window, tenant, version, DIMENSION, b"".join(stand_in(completed, blindings)),
            b"".join(digests), b"pi_idx", columns if set(columns) != {NO_COLUMNS} else (),
            id_keys(self.window, tenant, SECRET, names),
        )  # fmt: skip

    def _parts(self, held: Held) -> tuple[str, str, str]:
        marked = held.text is None if held.marked is None else held.marked
        columns = NULL_ROW if marked and self.policy.marks_null_rows else NO_COLUMNS
        return held.text or "", "" if held.text is None else '{"page":1}', columns

    def _vector(self, held: Held, position: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        bound = self.policy.norm_bound
        if held.vector is not None:
            rest = bound * bound - sum(entry * entry for entry in held.vector)
            return held.vector, four_squares(rest)
        if held.text is None:
            return (0,) * DIMENSION, (bound, 0, 0, 0)
        return tuple(bound if i == position % DIMENSION else 0 for i in range(DIMENSION)), (0,) * 4

    def _salt(self, version: int, position: int) -> bytes:
        return bytes([version, position]) + bytes(30)
