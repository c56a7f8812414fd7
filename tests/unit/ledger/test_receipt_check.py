"""Every step of the receipt check fails for its own reason, and any changed byte is noticed."""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import key_members, policy_document
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.merkle_commitments import IndexTree, content_digest, row_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import (
    AccountView,
    StepResult,
    WindowView,
    check_inclusion,
    check_promise,
    check_receipt_file,
)
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.records import Opening, Record, TenantOpening
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request, embedding_digest

DIMENSION = 4
ROWS = 6
NAMES = [
    "signature", "inclusion", "body", "answer_digest", "openings", "selection", "rows",
    "commitments", "embedder", "nonce",
]  # fmt: skip
POSITIONS = (1, 4)
VECTORS = [
    (100, 20, -7, 0),
    (0, 0, 0, 127),
    (3, 4, 5, 6),
    (90, 80, 0, 0),
    (1, 2, 3, 4),
    (9, 9, 9, 9),
]


def key(number: int) -> PrivateKey:
    return PrivateKey.from_seed(bytes([number]) * 32)


LOG = SigningKey("provider.example/ragaudit/w1", ED25519, key(1))
PROVIDER = key(2)
COSIGNER = SigningKey("regulator.example/cosigner", COSIGNATURE_V1, key(3))


class ToyOperations:
    """Hash commitments in place of curve points: the steps do not depend on the group."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        return hashlib.sha256(b"row" + repr(list(row)).encode() + blinding).digest()

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        return hashlib.sha256(b"sel" + repr(list(positions)).encode() + blinding).digest()

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        return hashlib.sha256(repr(list(query)).encode() + seed).digest()[: bits // 8]


OPERATIONS = ToyOperations()


def four_squares(rest: int) -> tuple[int, int, int, int]:
    """Some completion by brute force; the numbers are small."""
    for a in range(int(rest**0.5), -1, -1):
        left_a = rest - a * a
        for b in range(int(left_a**0.5), -1, -1):
            left_b = left_a - b * b
            for c in range(int(left_b**0.5), -1, -1):
                d = int((left_b - c * c) ** 0.5)
                for each in (d, d + 1):
                    if each * each == left_b - c * c:
                        return a, b, c, each
    raise AssertionError("every number is a sum of four squares")


def toy_embed(texts: Sequence[str]) -> list[list[int]]:
    known = {f"content {i}": list(vector) for i, vector in enumerate(VECTORS)}
    known["what is it?"] = [120, 0, 30, 0]
    return [known.get(text, [1, 1, 1, 1]) for text in texts]


@lru_cache(maxsize=1)
def policy() -> Policy:
    keys = key_members(
        log=LOG, provider=PROVIDER, cosigner=COSIGNER, verifier=key(4), verdict=key(5)
    )
    members = {
        "provider": "provider.example",
        "start": 1000,
        "end": 2000,
        "activation_instants": [900, 1500, 2100],
        "dimension": DIMENSION,
        "queries_per_account": 8,
        "tenants": [{"id": "acme", "owner_key": None}, {"id": "zeta", "owner_key": None}],
        "embedder_tolerance": 2,
        "estimator/seed": "07" * 32,
    }
    return Policy.from_json(policy_document(keys, members))


def salt(number: int) -> bytes:
    return bytes([number]) * 32


def committed_row(position: int) -> ServedRow:
    vector = VECTORS[position]
    squares = four_squares(16129 - sum(x * x for x in vector))
    return ServedRow(
        position=position,
        id=f"doc {position}",
        content=f"content {position}",
        salt=salt(100 + position),
        vector=vector,
        squares=squares,
        blinding=salt(150 + position),
        commitment=OPERATIONS.commit_row((*vector, *squares), salt(150 + position)),
        path=(),
    )


@dataclass(frozen=True)
class Scene:
    """A window with one record, in parts that a test can change before they are signed."""

    request: Request
    record: Record
    answer: Answer
    private: PrivateReceipt
    view: WindowView
    account: AccountView
    anchor: bytes | None
    promise: Promise | None
    index: int = 3
    proof: bool = True
    issued: int = 1_200_500

    def file(self) -> ReceiptFile:
        body = self.record.encode()
        public = PublicReceipt.issue(
            PROVIDER,
            origin=LOG.name,
            index=self.index,
            salt=salt(9),
            body=body,
            issued=self.issued,
            answer_digest=answer_digest(self.request, self.answer, self.private),
        )
        if self.proof:
            public = public.with_proof(tlog_proof(public.leaf_data, self.index))
        return ReceiptFile(self.request, self.answer, public, self.private)

    def check(self, **changes: Any) -> list[StepResult]:
        arguments: dict[str, Any] = {
            "anchor": self.anchor,
            "promise": self.promise,
            "embed": toy_embed,
            "account": self.account,
        }
        file = changes.pop("file", None) or self.file()
        return check_receipt_file(file, self.view, OPERATIONS, **{**arguments, **changes})

    def fails(self, step: int, message: str, **changes: Any) -> None:
        with pytest.raises(ReceiptRejected, match=message) as caught:
            self.check(**changes)
        assert caught.value.where.startswith(f"step {step} "), caught.value

    def with_record(self, **changes: Any) -> "Scene":
        record = replace(self.record, **changes)
        return replace(self, record=record, promise=None)

    def with_private(self, **changes: Any) -> "Scene":
        return replace(self, private=replace(self.private, **changes))

    def with_row(self, **changes: Any) -> "Scene":
        first, *others = self.private.rows
        return self.with_private(rows=(replace(first, **changes), *others))


def tlog_proof(data: bytes, index: int, cosigner: SigningKey = COSIGNER) -> TlogProof:
    tree = MemoryTree([f"leaf {i}".encode() for i in range(index)])
    tree.append(data)
    for number in range(3):
        tree.append(f"later {number}".encode())
    signed = sign_checkpoint(Checkpoint(LOG.name, tree.head()), LOG)
    note = signed.note.with_signatures([cosign(signed.note.text, cosigner, 1201)])
    return TlogProof(index, tree.inclusion_proof(index), note.encode())


def scene(anchored: bool = True) -> Scene:
    return _scenes()[anchored]


@lru_cache(maxsize=1)
def _scenes() -> dict[bool, Scene]:
    return {anchored: _scene(anchored) for anchored in (True, False)}


def _scene(anchored: bool) -> Scene:
    rows = [committed_row(i) for i in range(ROWS)]
    tree = IndexTree(
        b"".join(row.commitment for row in rows),
        b"".join(row_digest(row.salt, row.id, content_digest(row.content)) for row in rows),
    )
    served = tuple(replace(rows[i], path=tree.path(i)) for i in POSITIONS)
    tenants = (
        TenantOpening("acme", ROWS, tree.root, bytes(32)),
        TenantOpening("zeta", ROWS, bytes(32), bytes(32)),
    )
    opening = Opening(policy().digest, bytes(32), salt(77), tenants)
    pseudonym, counter = salt(55), 2
    chain = NonceChain("w1", pseudonym, salt(66), policy().queries_per_account)
    embedding = (120, 0, 30, 0)
    openings = Openings(
        query="what is it?",
        salt_q=salt(11),
        embedding=embedding,
        salt_e=salt(12),
        filter="",
        salt_f=salt(13),
        sketch=OPERATIONS.sketch(embedding, bytes([7]) * 32, 64),
        salt_s=salt(14),
    )
    request = Request(openings.query, 3, counter if anchored else None)
    record = Record(
        policy_digest=policy().digest,
        window="w1",
        tenant="acme",
        version=1,
        rows=ROWS,
        top_k=3,
        filter_digest=salted(openings.salt_f, ""),
        pseudonym=pseudonym,
        epoch=1,
        slot=1,
        counter=counter,
        activation=2,
        time=1_200_000,
        nonce=None,
        query_digest=salted(openings.salt_q, openings.query),
        embedding_digest=embedding_digest(openings.salt_e, embedding),
        sketch_digest=salted(openings.salt_s, openings.sketch),
        selection_commitment=None,
    )
    promise = None
    if anchored:
        promise = Promise.issue(
            PROVIDER, origin=LOG.name, body=record.encode(), request=request, openings=openings
        )
    blinding = salt(15)
    record = replace(
        record,
        nonce=chain.nonce(counter) if anchored else None,
        selection_commitment=OPERATIONS.commit_selection(POSITIONS, blinding),
    )
    return Scene(
        request=request,
        record=record,
        answer=Answer(tuple(Document(row.position, row.id, row.content) for row in served)),
        private=PrivateReceipt(openings, POSITIONS, blinding, salt(16), served),
        view=WindowView(policy(), opening, covered_sizes=(1, 3)),
        account=AccountView("acme", pseudonym, 1, 2, counter),
        anchor=chain.anchor if anchored else None,
        promise=promise,
    )


# Honest receipts


@pytest.mark.parametrize("anchored", [True, False])
def test_an_honest_receipt_passes_every_step(anchored: bool) -> None:
    steps = scene(anchored).check()
    assert [step.number for step in steps] == list(range(1, 11))
    assert [step.name.replace(" ", "_") for step in steps] == NAMES
    assert all(step.status == "done" for step in steps), steps


def test_the_file_is_accepted_as_json_too() -> None:
    assert scene().check(file=scene().file().to_json()) == scene().check()


def test_an_empty_selection_is_possible() -> None:
    empty = scene().with_private(selected=(), rows=())
    commitment = OPERATIONS.commit_selection((), empty.private.selection_blinding)
    empty = replace(empty, answer=Answer(())).with_record(selection_commitment=commitment)
    assert empty.check()[5].status == "done"


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (9, {"embed": None}),
        (10, {"anchor": None}),
        (10, {"promise": None}),
        (3, {"account": None}),
    ],
)
def test_what_is_not_at_hand_is_reported_as_not_done(step: int, changes: dict[str, Any]) -> None:
    steps = scene().check(**changes)
    assert [each.number for each in steps if each.status == "not done"] == [step]
    assert steps[step - 1].detail


def test_without_released_activations_the_activation_is_not_known() -> None:
    unknown = replace(scene(), view=WindowView(policy(), scene().view.opening))
    assert unknown.check()[2].status == "not done"


# Step by step


def test_signature_of_another_key() -> None:
    file = scene().file()
    other = PublicReceipt.issue(
        key(8),
        origin=file.public.origin,
        index=file.public.index,
        salt=file.public.salt,
        body=file.public.body,
        issued=file.public.issued,
        answer_digest=file.public.answer_digest,
    )
    scene().fails(
        1, "signature", file=replace(file, public=replace(other, proof=file.public.proof))
    )


def test_signature_for_another_log() -> None:
    file = scene().file()
    public = replace(file.public, origin="provider.example/ragaudit/w2")
    scene().fails(1, "another log", file=replace(file, public=public))


@pytest.mark.parametrize("name", ["index", "issued"])
def test_signature_covers_place_and_time(name: str) -> None:
    file = scene().file()
    public = replace(file.public, **{name: getattr(file.public, name) + 1})
    scene().fails(1, "signature", file=replace(file, public=public))


def test_a_missing_proof_is_outstanding() -> None:
    assert replace(scene(), proof=False).check()[1].status == "not done"


def test_inclusion_of_another_leaf() -> None:
    file = scene().file()
    proof = tlog_proof(b"another leaf", file.public.index)
    scene().fails(2, "another root", file=replace(file, public=file.public.with_proof(proof)))


def test_inclusion_at_another_index() -> None:
    file = scene().file()
    proof = tlog_proof(file.public.leaf_data, file.public.index + 1)
    scene().fails(2, "another index", file=replace(file, public=file.public.with_proof(proof)))


def test_inclusion_under_another_cosigner() -> None:
    file = scene().file()
    other = SigningKey("other.example/cosigner", COSIGNATURE_V1, key(9))
    proof = tlog_proof(file.public.leaf_data, file.public.index, other)
    scene().fails(2, "cosigned by 0", file=replace(file, public=file.public.with_proof(proof)))


def test_inclusion_can_be_checked_alone_when_a_receipt_is_completed() -> None:
    public = scene().file().public
    assert check_inclusion(public, scene().view) == scene().check()[1]
    for other in (
        replace(public, proof=None),
        replace(public, salt=bytes(32)),
        public.with_proof(tlog_proof(b"another leaf", public.index)),
    ):
        with pytest.raises(ReceiptRejected, match="step 2"):
            check_inclusion(other, scene().view)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy_digest": bytes(32)}, "policy"),
        ({"window": "w2"}, "window"),
        ({"version": 2}, "version"),
        ({"rows": ROWS + 1}, "rows"),
        ({"epoch": 2}, "epoch"),
        ({"top_k": 2}, "top_k"),
        ({"counter": 3}, "counter"),
        ({"counter": 8}, "counter"),
        ({"tenant": "zeta"}, "tenant"),
        ({"tenant": "none"}, "no such tenant"),
        ({"pseudonym": bytes(32)}, "pseudonym"),
        ({"slot": 2}, "slot"),
        ({"slot": 4}, "slot"),
        ({"activation": 1}, "activation"),
        ({"activation": 3}, "activation"),
        ({"time": 999_999}, "time"),
        ({"time": 2_000_000}, "time"),
    ],
)
def test_body_of_another_account_window_or_request(change: dict[str, Any], message: str) -> None:
    scene().with_record(**change).fails(3, message)


def test_body_with_more_than_the_policys_rows() -> None:
    asked = replace(scene(), request=replace(scene().request, top_k=4), promise=None)
    asked.with_record(top_k=4).fails(3, "K = 4")


def test_body_with_a_nonce_that_the_request_does_not_expect() -> None:
    plain = replace(scene(), request=replace(scene().request, counter=None), promise=None)
    plain.fails(3, "nonce")
    scene().with_record(nonce=None).fails(3, "nonce")


def test_body_before_the_registration_is_activated() -> None:
    late = replace(scene(), account=replace(scene().account, registration_index=3))
    late.fails(3, "not activated")


def test_another_answer_than_signed() -> None:
    file = scene().file()
    other = Answer(file.answer.documents[:1])
    scene().fails(4, "another answer", file=replace(file, answer=other))
    request = replace(file.request, query="what else?")
    scene().fails(4, "another answer", file=replace(file, request=request))


@pytest.mark.parametrize("name", ["salt_q", "salt_e", "salt_f", "salt_s"])
def test_openings_with_another_salt(name: str) -> None:
    openings = replace(scene().private.openings, **{name: bytes(32)})  # type: ignore[arg-type]
    scene().with_private(openings=openings).fails(5, "does not open")


def test_openings_of_another_query() -> None:
    openings = replace(scene().private.openings, query="what else?")
    scene().with_private(openings=openings).fails(5, "another query")


@pytest.mark.parametrize(
    ("embedding", "message"),
    [((127, 1, 0, 0), "norm above"), ((1, 2, 3), "3 entries"), ((120, 0, 30, 1), "sketch")],
)
def test_openings_of_an_embedding_that_must_not_be(
    embedding: tuple[int, ...], message: str
) -> None:
    openings = replace(scene().private.openings, embedding=embedding)
    digest = embedding_digest(openings.salt_e, embedding)
    changed = scene().with_private(openings=openings)
    changed.with_record(embedding_digest=digest).fails(5, message)


def test_openings_of_another_sketch() -> None:
    openings = replace(scene().private.openings, sketch=bytes(8))
    digest = salted(openings.salt_s, bytes(8))
    changed = scene().with_private(openings=openings)
    changed.with_record(sketch_digest=digest).fails(5, "sketch")


def test_selection_of_other_rows() -> None:
    scene().with_private(selected=(1, 5)).fails(6, "selection commitment")
    scene().with_private(selected=(1,)).fails(6, "selection commitment")
    scene().with_private(selection_blinding=bytes(32)).fails(6, "selection commitment")


def test_selection_of_more_than_asked() -> None:
    scene().with_private(selected=(0, 1, 2, 4)).fails(6, "4 rows")


def test_selection_beyond_the_index() -> None:
    scene().with_private(selected=(1, ROWS)).fails(6, "position 6")


def test_rows_other_than_the_selected() -> None:
    scene().with_private(rows=scene().private.rows[:1]).fails(7, "not the selected")
    scene().with_private(rows=scene().private.rows[::-1]).fails(7, "not the selected")


@pytest.mark.parametrize("change", [{"content": "forged"}, {"id": "other"}])
def test_documents_other_than_the_rows(change: dict[str, str]) -> None:
    first, second = scene().answer.documents
    forged = Answer((replace(first, **change), second))  # type: ignore[arg-type]
    replace(scene(), answer=forged).fails(7, "not the receipt's rows")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"salt": bytes(32)}, "row of C_idx"),
        ({"blinding": bytes(32)}, "not the committed"),
        ({"vector": (0, 0, 0, 126), "squares": (15, 5, 1, 1)}, "another norm"),
        ({"vector": (127, 0, 0, 0), "squares": (0, 0, 0, 0)}, "not the committed"),
        ({"vector": (0, 0, 0), "squares": (127, 0, 0, 0)}, "3 entries"),
        ({"squares": (127, 0, 0, 1)}, "another norm"),
    ],
)
def test_rows_that_are_not_the_committed_ones(change: dict[str, Any], message: str) -> None:
    scene().with_row(**change).fails(8, message)


def test_a_row_with_a_commitment_of_its_own() -> None:
    row = scene().private.rows[0]
    vector, squares = (127, 0, 0, 0), (0, 0, 0, 0)
    made = OPERATIONS.commit_row((*vector, *squares), row.blinding)
    scene().with_row(vector=vector, squares=squares, commitment=made).fails(8, "row of C_idx")


def test_a_row_with_another_path() -> None:
    scene().with_row(path=scene().private.rows[1].path).fails(8, "inclusion proof")


def test_content_that_is_not_of_its_row() -> None:
    first, second = scene().answer.documents
    forged = replace(scene(), answer=Answer((replace(first, content="forged"), second)))
    forged.with_row(content="forged").fails(8, "row of C_idx")


def test_embeddings_outside_the_tolerance() -> None:
    def other(texts: Sequence[str]) -> list[list[int]]:
        return [
            [vector[0] - 1, vector[1] + 1, vector[2] + 1, vector[3]] for vector in toy_embed(texts)
        ]

    scene().fails(9, "off by 3", embed=other)


def test_embeddings_inside_the_tolerance() -> None:
    def near(texts: Sequence[str]) -> list[list[int]]:
        return [[vector[0] - 1, vector[1] + 1, *vector[2:]] for vector in toy_embed(texts)]

    assert scene().check(embed=near)[8].status == "done"


def test_an_embedder_of_another_dimension() -> None:
    scene().fails(9, "4 entries", embed=lambda texts: [[1]] * len(texts))


def test_a_nonce_that_is_not_of_the_chain() -> None:
    scene().with_record(nonce=bytes(32)).fails(10, "not the chain's nonce", promise=None)


def test_no_nonce_for_an_anchored_account() -> None:
    scene(anchored=False).fails(10, "anchored", anchor=scene().anchor)


@pytest.mark.parametrize(
    "change", [{"time": 1_200_001}, {"activation": 2, "query_digest": bytes(32)}]
)
def test_a_record_that_contradicts_its_promise(change: dict[str, Any]) -> None:
    promise = scene().promise
    assert promise is not None
    body = replace(scene().record.promised(), **change).encode()
    other = Promise.issue(
        PROVIDER, origin=LOG.name, body=body, request=promise.request, openings=promise.openings
    )
    scene().fails(10, "contradicts", promise=other)


# Whole files


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [each for name in value for each in leaves(value[name], (*path, name))]
    if isinstance(value, list):
        return [each for i, item in enumerate(value) for each in leaves(item, (*path, i))]
    return [path]


def changed(value: Any) -> Any:
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        hexadecimal = value and all(c in "0123456789abcdef" for c in value)
        return (("1" if value[0] == "0" else "0") + value[1:]) if hexadecimal else value + "x"
    return "x"


FILE = _scenes()[True].file().to_json()
PATHS = leaves(FILE)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_no_member_of_the_file_can_change(path: tuple[Any, ...]) -> None:
    file = copy.deepcopy(FILE)
    place = file
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = changed(place[path[-1]])
    with pytest.raises((ReceiptRejected, MalformedError, UnsupportedError)):
        scene().check(file=file)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_bit_of_the_signed_bytes_can_change(data: st.DataObject) -> None:
    file = copy.deepcopy(FILE)
    half, name = data.draw(
        st.sampled_from([("public", "body"), ("public", "signature"), ("public", "salt"),
                         ("private", "selection_blinding"), ("private", "salt_r")])
    )  # fmt: skip
    value = bytearray.fromhex(file[half][name])
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    value[bit // 8] ^= 1 << bit % 8
    file[half][name] = value.hex()
    with pytest.raises((ReceiptRejected, MalformedError)):
        scene().check(file=file)


# Promises


def promise_of(change: dict[str, Any], request: Request | None = None) -> Promise:
    record = replace(scene().record.promised(), **change)
    return Promise.issue(
        PROVIDER,
        origin=LOG.name,
        body=record.encode(),
        request=request or scene().request,
        openings=scene().private.openings,
    )


def checked(promise: Promise, **changes: Any) -> None:
    arguments: dict[str, Any] = {"account": scene().account, "embed": toy_embed, **changes}
    check_promise(promise, scene().request, scene().view, OPERATIONS, **arguments)


def test_an_honest_promise_passes() -> None:
    checked(promise_of({}))
    checked(promise_of({}), embed=None)


@pytest.mark.parametrize(
    "change",
    [
        {"policy_digest": bytes(32)},
        {"window": "w2"},
        {"tenant": "zeta"},
        {"version": 2},
        {"rows": 7},
        {"top_k": 2},
        {"epoch": 2},
        {"slot": 0},
        {"counter": 3},
        {"activation": 1},
        {"pseudonym": bytes(32)},
        {"time": 999_999},
        {"query_digest": bytes(32)},
        {"embedding_digest": bytes(32)},
        {"sketch_digest": bytes(32)},
        {"filter_digest": bytes(32)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_promise_that_is_false_in_one_field(change: dict[str, Any]) -> None:
    with pytest.raises(ReceiptRejected, match="promise"):
        checked(promise_of(change))


def test_a_promise_for_another_request() -> None:
    with pytest.raises(ReceiptRejected, match="another request"):
        checked(promise_of({}, replace(scene().request, query="what else?")))


def test_a_promise_that_is_not_signed_by_the_provider() -> None:
    promise = promise_of({})
    with pytest.raises(ReceiptRejected, match="signature"):
        checked(replace(promise, signature=bytes(64)))
    with pytest.raises(ReceiptRejected, match="another log"):
        checked(replace(promise, origin="provider.example/ragaudit/w2"))


def test_a_promise_with_an_embedding_of_another_text() -> None:
    with pytest.raises(ReceiptRejected, match="off by"):
        checked(promise_of({}), embed=lambda texts: [[0, 0, 0, 127]] * len(texts))
