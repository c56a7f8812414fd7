"""A window without noise: ties, columns, a filter, a second version; each part can be changed."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ragaudit.encoding.digests import salted
from ragaudit.lab.scenario.policy import key_members, policy_document
from ragaudit.ledger.messages.columns import NULL_ROW, columns_text, read_columns
from ragaudit.ledger.messages.commitments import IndexTree, content_digest, row_digest
from ragaudit.ledger.messages.documents import id_commitment, id_keys
from ragaudit.ledger.messages.entries import Opening, Record, TenantOpening, Version
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import AccountView, WindowView
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    ServedRow,
    TiesOpening,
    UnservedRow,
    WithdrawnRow,
)
from ragaudit.ledger.messages.requests import (
    Answer,
    Document,
    Openings,
    Request,
    embedding_digest,
    float32_bytes,
    float32_values,
)
from ragaudit.ledger.messages.ties import TiesStatement, first_of
from receipt_scene import (
    COSIGNER,
    DIMENSION,
    LOG,
    OPERATIONS,
    PROVIDER,
    Scene,
    four_squares,
    key,
    salt,
)

BOUND = 4095
# Rows 1, 3, 4, 6 have one vector: their scores tie whatever is asked.
VECTORS = [
    (4000, 20, -7, 0), (100, 200, 300, 400), (3, 4, 5, 4000), (100, 200, 300, 400),
    (100, 200, 300, 400), (-9, 9, 9, 9), (100, 200, 300, 400), (0, 0, 0, 0),
]  # fmt: skip
ROWS = len(VECTORS)
COLUMNS: list[dict[str, Any]] = [
    {"lang": "de", "year": 2001}, {"lang": "en", "year": 2002}, {}, {"lang": "en", "year": 2002},
    {"lang": "en"}, {"lang": "en", "year": 1999}, {"lang": "en", "year": 2003}, {},
]  # fmt: skip
DELETED = {7}
"""Positions of null rows, which stand where documents were deleted (5.4)."""
ASKED = float32_bytes([0.5, 0.25, 0.125, 0.0625])
IN_ENGLISH = '{"key":"lang","op":"eq","value":"en"}'

SAMPLER = {"id": "ragaudit/v1/dgs", "distance": "2^-100"}
NOISE = {
    "privacy": "gaussian", "norm_bound": 127, "epsilon_acc": "20", "delta_acc": "0.00001",
    "delta_policy": "0.00001", "sigma": "4", "relation": "replace", "rows_per_document": 1,
    "calibration": "chosen", "coalition_max": 2, "sampler": SAMPLER,
}  # fmt: skip


def policy_value(**changes: Any) -> dict[str, Any]:
    """A policy without noise, as JSON."""
    keys = key_members(
        log=LOG, provider=PROVIDER, cosigner=COSIGNER, verifier=key(4), verdict=key(5)
    )
    members = {
        "provider": "provider.example",
        "start": 1000,
        "end": 2000,
        "activation_instants": [900, 1500, 2100],
        "dimension": DIMENSION,
        "top_k_max": 8,
        "queries_per_account": 8,
        "tenants": [{"id": "acme", "owner_key": None}, {"id": "zeta", "owner_key": None}],
        "estimator/seed": "07" * 32,
    }
    noise = (
        "epsilon_acc", "delta_acc", "delta_policy", "sigma", "relation", "rows_per_document",
        "calibration", "coalition_max", "sampler", "experiment_seed",
    )  # fmt: skip
    second = {
        "privacy": "none",
        "norm_bound": BOUND,
        "metric": "cosine",
        "largest_norm": None,
        "public_columns": [
            {"name": "lang", "type": "string"},
            {"name": "year", "type": "integer"},
        ],
        "filter_grammar": "ragaudit/v1/filter",
        "query_kinds": ["text", "vector"],
        "retry_seconds": 60,
        "versions": True,
    }
    return {**policy_document(keys, members), **dict.fromkeys(noise), **second, **changes}


@lru_cache(maxsize=2)
def policy(*, owned: bool = False) -> Policy:
    return Policy.from_json(policy_value(**({"owners": {"rows": None}} if owned else {})))


def committed_row(position: int, version: int) -> ServedRow:
    vector = VECTORS[position]
    squares = four_squares(BOUND * BOUND - sum(x * x for x in vector))
    mark = 50 * version + position
    held = position not in DELETED
    return ServedRow(
        position=position, id=f"doc {position}", content=f"content {position}" if held else "",
        salt=salt(mark), vector=vector, squares=squares, blinding=salt(100 + mark),
        commitment=OPERATIONS.commit_row((*vector, *squares), salt(100 + mark)), path=(),
        columns=columns_of(position, version),
        attributes=f'{{"at":{position}}}' if held else "",
    )  # fmt: skip


def columns_of(position: int, version: int) -> str:
    """A later version marks its null rows; in a first one nothing says what they are."""
    if version > 1 and position in DELETED:
        return NULL_ROW
    return columns_text(COLUMNS[position], policy().retrieval.public_columns)


def digest_of(row: ServedRow) -> bytes:
    return row_digest(row.salt, row.id, content_digest(row.content, row.attributes))


SECRET = salt(77)
KEYS = id_keys("w1", "acme", SECRET, [f"doc {position}" for position in range(ROWS)])
"""The document secret of the tenant, and the id keys of its rows."""


@lru_cache(maxsize=4)
def index(version: int, keys: bytes = b"") -> tuple[list[ServedRow], TenantOpening]:
    """The rows with their paths, and what the log says of them.

    Args:
        keys: the id keys of the rows.
    """
    rows = [committed_row(i, version) for i in range(ROWS)]
    tree = IndexTree(
        b"".join(row.commitment for row in rows),
        b"".join(map(digest_of, rows)),
        [row.columns for row in rows],
        keys,
    )
    opened = TenantOpening("acme", ROWS, tree.root, bytes(32), version)
    if keys and version == 1:
        opened = replace(opened, id_commitment=id_commitment("w1", "acme", SECRET))
    return [replace(row, path=tree.path(row.position)) for row in rows], opened


def view(policy: Policy, keys: bytes = b"") -> WindowView:
    other = bytes(32) if keys else None
    zeta = TenantOpening("zeta", ROWS, bytes(32), bytes(32), id_commitment=other)
    opening = Opening(policy.digest, bytes(32), b"", (index(1, keys)[1], zeta))
    later = index(2, keys)[1]
    version = Version("w1", "acme", 2, ROWS, later.index_root, later.proof_digest, 1_100_000)
    return WindowView(policy, opening, covered_sizes=(2, 3), versions=((2, version),))


def unserved(row: ServedRow, keys: bytes = b"") -> UnservedRow:
    key = keys[32 * row.position : 32 * row.position + 32] or None
    return UnservedRow(row.position, row.commitment, row.columns, digest_of(row), row.path, key)


def integrity_scene(
    *,
    asked: str | bytes = ASKED,
    filter_text: str = "",
    top_k: int = 2,
    withdrawn: Sequence[int] = (),
    version: int = 1,
    top: Sequence[int] | None = None,
    let: Sequence[int] | None = None,
    keys: bytes = b"",
) -> Scene:
    """An honest answer, or with ``top`` one of other rows than the first ones of T.

    With ``let``, these rows pass the filter. With ``keys``, in a window with owners, the rows have
    these id keys.
    """
    window, (rows, _) = policy(owned=bool(keys)), index(version, keys)
    request = Request.of(window, asked, top_k, filter=filter_text)
    embedding = (120, 0, 30, 0)
    if isinstance(asked, bytes):
        embedding = OPERATIONS.quantise(float32_values(asked), BOUND)  # type: ignore[assignment]
    openings = Openings(
        query=request.query, vector=request.vector, kind=request.kind, salt_q=salt(11),
        embedding=embedding, salt_e=salt(12), filter=filter_text, salt_f=salt(13),
        sketch=OPERATIONS.sketch(embedding, bytes([7]) * 32, 64), salt_s=salt(14),
    )  # fmt: skip
    columns = window.retrieval.public_columns
    allowed = Filter.parse(filter_text, columns).allowed(
        [None if row.columns == NULL_ROW else read_columns(row.columns, columns) for row in rows]
    )
    allowed = allowed if let is None else tuple(let)
    scores = {
        i: sum(a * b for a, b in zip(rows[i].vector, embedding, strict=True)) for i in allowed
    }
    least = sorted(scores.values(), reverse=True)[:top_k][-1] if scores else 0
    selected = tuple(sorted(i for i in allowed if scores[i] >= least))
    first = first_of({i: scores[i] for i in selected}, top_k) if top is None else tuple(top)
    served = tuple(rows[i] for i in first if i not in withdrawn)
    tied = len(selected) > top_k
    record = Record(
        policy_digest=window.digest, window="w1", tenant="acme", version=version, rows=ROWS,
        top_k=top_k, filter_digest=salted(openings.salt_f, filter_text), pseudonym=salt(55),
        epoch=1, slot=1, counter=2, activation=version,
        time=1_200_000 if version == 1 else 1_600_000, nonce=None,
        query_digest=salted(openings.salt_q, openings.question.data),
        embedding_digest=embedding_digest(openings.salt_e, embedding),
        sketch_digest=salted(openings.salt_s, openings.sketch),
        selection_commitment=OPERATIONS.commit_selection(selected, salt(15)),
        withheld=len(withdrawn),
    )  # fmt: skip
    private = PrivateReceipt(
        openings, selected, salt(15), salt(16), served,
        withdrawn=tuple(
            WithdrawnRow(i, rows[i].id, scores[i] if tied else None) for i in sorted(withdrawn)
        ),
        document_secret=SECRET if keys else None,
    )  # fmt: skip
    made = Scene(
        request=request,
        record=record,
        answer=Answer(tuple(document(row, scores[row.position]) for row in served)),
        private=private,
        view=view(window, keys),
        account=AccountView("acme", salt(55), 1, 1, 2),
        anchor=None,
        promise=None,
    )
    return with_ties(made, keys) if tied else made


def document(row: ServedRow, score: int | None) -> Document:
    return Document(row.position, row.id, row.content, row.columns, row.attributes, score)


def with_ties(scene: Scene, keys: bytes = b"") -> Scene:
    """The scene with an opening of what its private part says, true or not."""
    rows, opened = index(scene.record.version, keys)
    served = {document.position: document.score or 0 for document in scene.answer.documents}
    behind = [rows[i] for i in scene.private.selected if i not in served]
    statement = TiesStatement.of(
        scene.record,
        body=scene.record.encode(),
        index_root=opened.index_root,
        query=scene.private.openings.embedding,
        selected=scene.private.selected,
        served=served,
        withdrawn={row.position: row.score or 0 for row in scene.private.withdrawn},
        commitments={row.position: row.commitment for row in behind},
        squared_norm=BOUND * BOUND,
    )
    proof = OPERATIONS.prove_ties(statement)
    leaves = tuple(unserved(row, keys) for row in behind)
    return scene.with_private(ties=TiesOpening(leaves, proof))
