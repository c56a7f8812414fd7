"""Vectors of policy, entries, commitments, chains and receipts (docs/spec/05-records.md).

Run it to write receipts.json anew. Made by the ledger's own code from fixed seeds; the tests of
the ledger compare each part with its formula.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from ragaudit.encoding.digests import salted
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    IndexTree,
    SeedCommitment,
    content_digest,
    row_digest,
)
from ragaudit.ledger.messages.entries import (
    Close,
    Opening,
    Record,
    Registration,
    TenantOpening,
    entry_leaf_data,
)
from ragaudit.ledger.messages.identifiers import pseudonym
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request, embedding_digest

FOLDER = Path(__file__).parent
WINDOW, TENANT, ORIGIN = "w1", "alpha", "rag.example.com/ragaudit/w1"
START = 1_800_000_000
DIMENSION, ROWS, SLOTS, QUERIES = 4, 6, 3, 8


def seed(name: Any) -> Any:
    """32 bytes for everything that is random in earnest."""
    return hashlib.sha256(b"ragaudit receipts vector: " + name.encode()).digest()


def private(name: Any) -> Any:
    return PrivateKey.from_seed(seed(name))


LOG = SigningKey(ORIGIN, ED25519, private("log key"))
COSIGNER = SigningKey("regulator.example/cosigner", COSIGNATURE_V1, private("cosigner key"))
PROVIDER = private("provider key")
COSIGNERS = CosignerPolicy((COSIGNER.verifier_key,), 1)

POLICY = Policy.from_json(
    {
        "format": "ragaudit/v1/policy",
        "provider": "rag.example.com",
        "window": WINDOW,
        "start": START,
        "end": START + 3600,
        "previous_checkpoint": None,
        "epsilon_acc": "1",
        "delta_acc": "0.000001",
        "delta_policy": "0.00001",
        "sigma": "10.5",
        "relation": "replace",
        "rows_per_document": 1,
        "norm_bound": 127,
        "dimension": DIMENSION,
        "top_k_max": 3,
        "queries_per_account": QUERIES,
        "slots": SLOTS,
        "coalition_max": 2,
        "tenants": [{"id": TENANT, "owner_key": None}],
        "calibration": "none: a vector of encodings",
        "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
        "activation_instants": [START - 600, START + 7200],
        "activation_rounds": [None, None],
        "beacon": {"kind": "none"},
        "query_text_disclosure": "sampled",
        "embedder_tolerance": 0,
        "estimator": {
            "theta": "0.9",
            "tau_seconds": 60,
            "sketch_bits": 64,
            "seed": seed("estimator").hex(),
            "hamming_threshold": 9,
        },
        "privacy": "gaussian",
        "metric": "cosine",
        "largest_norm": None,
        "public_columns": [],
        "filter_grammar": "empty",
        "query_kinds": ["text"],
        "retry_seconds": 0,
        "versions": False,
        "proof_mode": "on-demand",
        "audit": {
            "mode": "A",
            "beta": "0.01",
            "tenants": {"eta": "0.05", "minimum": 1},
            "submitters": {"by": "account", "eta": "0.05", "minimum": 1},
            "deadline_seconds": 3600,
        },
        "merge_delay_seconds": 60,
        "clock_skew_seconds": 5,
        "promise_life_seconds": 300,
        "claim_margin_seconds": 5,
        "release_seconds": 20,
        "keys": {
            "arbiter": None,
            "log": str(LOG.verifier_key),
            "provider": PROVIDER.public.raw.hex(),
            "cosigner": str(COSIGNER.verifier_key),
            "verifier": private("verifier key").public.raw.hex(),
            "verdict": private("verdict key").public.raw.hex(),
        },
        "experiment_seed": "ragaudit receipts vector",
    }
)

SALTS = [seed(f"row salt {i}") for i in range(ROWS)]
CONTENTS = [f"The text of row {i}, é." for i in range(ROWS)]
POINTS = [seed(f"stands for the commitment of row {i}") for i in range(ROWS)]
INDEX = IndexCommitment(
    WINDOW,
    TENANT,
    1,
    DIMENSION,
    b"".join(POINTS),
    b"".join(row_digest(SALTS[i], f"doc-{i}", content_digest(CONTENTS[i])) for i in range(ROWS)),
    b"stands for the index argument",
)
SEEDS = SeedCommitment.build(seed("s_W"), WINDOW, 1, SLOTS, QUERIES)
ANN = pseudonym(seed("pseudonym key"), WINDOW, "ann")
CHAIN = chains.NonceChain(WINDOW, ANN, seed("nonce seed"), QUERIES)
REQUEST = Request("what is in row two?", 2, counter=0)
OPENINGS = Openings(
    query=REQUEST.query,
    salt_q=seed("salt_q"),
    embedding=(100, -50, 3, 0),
    salt_e=seed("salt_e"),
    filter="",
    salt_f=seed("salt_f"),
    sketch=seed("stands for the sketch")[:8],
    salt_s=seed("salt_s"),
)
RECORD = Record(
    policy_digest=POLICY.digest,
    window=WINDOW,
    tenant=TENANT,
    version=1,
    rows=ROWS,
    top_k=2,
    filter_digest=salted(OPENINGS.salt_f, ""),
    pseudonym=ANN,
    epoch=1,
    slot=0,
    counter=0,
    activation=1,
    time=1000 * START + 250,
    nonce=CHAIN.nonce(0),
    query_digest=salted(OPENINGS.salt_q, REQUEST.question.data),
    embedding_digest=embedding_digest(OPENINGS.salt_e, OPENINGS.embedding),
    sketch_digest=salted(OPENINGS.salt_s, OPENINGS.sketch),
    selection_commitment=seed("stands for C_sel"),
)
ENTRIES: list[Any] = [
    Opening(
        POLICY.digest,
        seed("stands for C_emb"),
        SEEDS.root,
        (TenantOpening(TENANT, ROWS, INDEX.root, INDEX.proof_digest),),
    ),
    Registration(
        WINDOW,
        ANN,
        TENANT,
        0,
        CHAIN.anchor,
        private("dispute key").public.raw,
        1000 * (START - 900),
    ),
    RECORD,
    Close(WINDOW, 1, 1, 1000 * (START + 3600)),
]
ENTRY_SALTS = [seed(f"entry salt {i}") for i in range(len(ENTRIES))]
TREE = MemoryTree(entry_leaf_data(s, e) for s, e in zip(ENTRY_SALTS, ENTRIES, strict=True))

SELECTED = (2, 5)
ANSWER = Answer(tuple(Document(i, f"doc-{i}", CONTENTS[i]) for i in SELECTED))
PRIVATE = PrivateReceipt(
    openings=OPENINGS,
    selected=SELECTED,
    selection_blinding=seed("rho_sel"),
    salt_r=seed("salt_r"),
    rows=tuple(
        ServedRow(
            position=i,
            id=f"doc-{i}",
            content=CONTENTS[i],
            salt=SALTS[i],
            vector=(i, -i, 0, 127 - i),
            squares=(1, 2, 3, 4),
            blinding=seed(f"blinding {i}"),
            commitment=POINTS[i],
            path=IndexTree(INDEX.commitments, INDEX.row_digests).path(i),
        )
        for i in SELECTED
    ),
)
PUBLIC = PublicReceipt(
    origin=ORIGIN,
    index=2,
    salt=ENTRY_SALTS[2],
    body=RECORD.encode(),
    issued=RECORD.time + 30,
    answer_digest=answer_digest(REQUEST, ANSWER, PRIVATE),
).signed(PROVIDER)
PROMISE = Promise.issue(
    PROVIDER, origin=ORIGIN, body=RECORD.promised().encode(), request=REQUEST, openings=OPENINGS
)
REFUSAL = Refusal(
    origin=ORIGIN,
    pseudonym=ANN,
    counter=QUERIES,
    reason="budget",
    time=1000 * START + 500,
).signed(PROVIDER)


def proof_of(index: Any, tree: Any = TREE) -> TlogProof:
    signed = sign_checkpoint(Checkpoint(ORIGIN, tree.head()), LOG)
    line = cosign(signed.checkpoint.text, COSIGNER, START + 40)
    note = signed.note.with_signatures([line])
    return TlogProof(index, tree.inclusion_proof(index), note.encode())


COMPLETE = PUBLIC.with_proofs(proof_of(2))
FILE = ReceiptFile(REQUEST, ANSWER, COMPLETE, PRIVATE)


def vectors() -> Any:
    """Return the document of receipts.json."""
    opening = SEEDS.open(1, 2)
    anchor = chains.activation_anchor(WINDOW, seed("s_V"), 2)
    preimage = chains.activation_preimage(WINDOW, seed("s_V"), 2, 1)
    return {
        "origin": "tests/vectors/make_receipts.py, from fixed seeds: "
        "SHA-256('ragaudit receipts vector: ' + name); group elements are placeholders",
        "policy": POLICY.encode().decode(),
        "policy_digest": POLICY.digest.hex(),
        "entries": [
            {"kind": e.KIND, "salt": s.hex(), "body": e.encode().hex(), "leaf_data": d.hex()}
            for e, s in zip(ENTRIES, ENTRY_SALTS, strict=True)
            for d in [entry_leaf_data(s, e)]
        ],
        "log_root": TREE.root().hex(),
        "index": {
            "salts": [each.hex() for each in SALTS],
            "ids": [f"doc-{i}" for i in range(ROWS)],
            "contents": CONTENTS,
            "commitments": [each.hex() for each in POINTS],
            "handed_over": INDEX.encode().hex(),
            "root": INDEX.root.hex(),
            "proof_digest": INDEX.proof_digest.hex(),
        },
        "seed_commitment": {
            "secret": seed("s_W").hex(),
            "slots": SLOTS,
            "queries": QUERIES,
            "root": SEEDS.root.hex(),
            "slot": 1,
            "counter": 2,
            "key": opening.key.hex(),
            "counter_path": [each.hex() for each in opening.counter_path],
            "slot_path": [each.hex() for each in opening.slot_path],
        },
        "pseudonym": {"key": seed("pseudonym key").hex(), "account": "ann", "value": ANN.hex()},
        "activation": {
            "seed": seed("s_V").hex(),
            "count": 2,
            "anchor": anchor.hex(),
            "preimage_1": preimage.hex(),
            "randomness_1": chains.activation_randomness(WINDOW, 1, preimage).hex(),
        },
        "nonces": {
            "seed": seed("nonce seed").hex(),
            "length": QUERIES,
            "anchor": CHAIN.anchor.hex(),
            "values": [CHAIN.nonce(c).hex() for c in range(QUERIES)],
        },
        "provider_seed": seed("provider key").hex(),
        "receipt_file": FILE.encode().decode(),
        "promise": PROMISE.encode().decode(),
        "refusal": REFUSAL.encode().decode(),
    }


def build() -> Any:
    """Return file name -> content."""
    text = json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"
    return {"receipts.json": text.encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
