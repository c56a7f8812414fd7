"""What prover and verifier tell each other, against bytes made from the specification alone."""

import base64
import io
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from ragaudit.circuits.noise import noise_key
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.signing import PrivateKey, PublicKey, SignatureRejected
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages.challenge import (
    Activation,
    Challenge,
    Countersignature,
    ReceiptsList,
    Response,
    opening_digest,
    receipts_digest,
)
from ragaudit.ledger.messages.disputes import (
    Dispute,
    Finding,
    HolderStatement,
    RegistrationStatement,
)
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.handover import read_handover, write_handover
from ragaudit.ledger.messages.policy import AuditTerms, Policy, StratumTerms, SubmitterTerms
from ragaudit.ledger.messages.requests import Question
from ragaudit.ledger.messages.verdict import Verdict, VerdictRejected, sign_statement, statement
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.privacy.sample import LoggedRecord, draw_sample, sampling_seed
from ragaudit.verifier.bundle import read_archive, write_archive
from ragaudit.verifier.evidence import Evidence
from vector_scripts import VECTORS, script

MESSAGES: dict[str, Any] = json.loads((VECTORS / "messages.json").read_bytes())
EPSILON: dict[str, Any] = json.loads((VECTORS / "epsilon.json").read_bytes())
KEY = PrivateKey.from_seed(bytes.fromhex(MESSAGES["verifier_seed"]))
PUBLIC = PublicKey(bytes.fromhex(MESSAGES["verifier_key"]))
OTHER = PrivateKey.from_seed(bytes(32)).public
vector = script("make_messages").some  # the bytes that stand for a digest, salt or key


def test_countersignature() -> None:
    data = MESSAGES["countersignature"].encode()
    read = Countersignature.parse(data)
    read.verify(PUBLIC)
    with pytest.raises(SignatureRejected):
        read.verify(OTHER)
    assert opening_digest(vector("salt 0"), b"opening body") == read.opening_digest
    again = Countersignature(window=read.window, policy_digest=read.policy_digest,
        opening_digest=read.opening_digest, terms_digest=read.terms_digest,
        activation_anchor=read.activation_anchor, time=read.time,
    ).signed(KEY)  # fmt: skip
    assert again == read
    assert again.encode() == data


def test_verdict() -> None:
    data = MESSAGES["verdict"].encode()
    key = PrivateKey.from_seed(bytes.fromhex(MESSAGES["verdict_seed"]))
    read = Verdict.verify(data, key.public)
    assert read.result == "REFUSED" and list(read.subjects) == [
        "public/leaves.bin",
        "public/policy.json",
    ]
    with pytest.raises(VerdictRejected):
        Verdict.verify(data, OTHER)
    assert sign_statement(statement(read.subjects, read.predicate.to_json()), key) == data


def test_messages_of_accounts_and_arbiter() -> None:
    case = MESSAGES["accounts"]
    account = PublicKey(bytes.fromhex(case["dispute_key"]))
    arbiter = PublicKey(bytes.fromhex(case["arbiter_key"]))
    for text in case["statements"]:
        shown = RegistrationStatement.from_json(canonical_json.loads(text.encode()))
        shown.verify(account)
        assert shown.encode() == text.encode()
    dispute = Dispute.from_json(canonical_json.loads(case["dispute"].encode()))
    dispute.verify(account)
    assert dispute.encode() == case["dispute"].encode()
    assert dispute.identity.hex() == case["dispute_identity"]
    holder = HolderStatement.from_json(canonical_json.loads(case["holder"].encode()))
    holder.verify(account)
    holder.verify_documents([canonical_json.loads(each.encode()) for each in case["submission"]])
    assert holder.encode() == case["holder"].encode()
    finding = Finding.from_json(canonical_json.loads(case["finding"].encode()))
    finding.verify(arbiter)
    assert finding.upheld and finding.encode() == case["finding"].encode()
    for message in (shown, holder, dispute, finding):
        with pytest.raises(ReceiptRejected, match="signature"):
            message.verify(OTHER)


def test_activation() -> None:
    case = MESSAGES["activation"]
    window, last = MESSAGES["window"], bytes.fromhex(case["last_preimage"])
    anchor = chains.activation_anchor(window, last, 3)
    assert anchor.hex() == case["anchor"]
    for a, preimage in case["preimages"].items():
        assert chains.activation_preimage(window, last, 3, int(a)).hex() == preimage
        chains.verify_activation_preimage(window, anchor, int(a), bytes.fromhex(preimage))
    for a, randomness in case["randomness"].items():
        preimage = bytes.fromhex(case["preimages"][a])
        assert chains.activation_randomness(window, int(a), preimage).hex() == randomness
    read = Activation.parse(case["message"].encode())
    read.verify(PUBLIC)
    with pytest.raises(SignatureRejected):
        read.verify(OTHER)
    again = Activation(
        window=read.window, a=read.a, preimage=read.preimage, covered_size=read.covered_size,
        time=read.time,
    ).signed(KEY)  # fmt: skip
    assert again.encode().decode() == case["message"]


@pytest.mark.parametrize("case", MESSAGES["receipts_lists"], ids=lambda case: str(case["count"]))
def test_receipts_list(case: dict[str, Any]) -> None:
    read = ReceiptsList.parse(case["message"].encode())
    read.verify(PUBLIC)
    receipts = [(n, vector(f"receipt {n}")) for n in range(case["count"])]
    if case["doubled"]:
        receipts[1000] = (7, vector("another receipt 7"))
    assert receipts_digest(reversed(receipts)) == read.digest
    again = ReceiptsList(
        window=read.window, digest=read.digest, count=read.count, time=read.time
    ).signed(KEY)
    assert again.encode().decode() == case["message"]


def test_challenge() -> None:
    data = MESSAGES["challenge"].encode()
    read = Challenge.parse(data)
    read.verify(PUBLIC)
    with pytest.raises(SignatureRejected):
        read.verify(OTHER)
    again = Challenge(window=read.window, final_root=read.final_root, final_size=read.final_size,
        preimage=read.preimage, receipts_list=read.receipts_list, strata=read.strata,
        deadline=read.deadline,
    ).signed(KEY)  # fmt: skip
    assert again.encode() == data
    assert [each.population for each in read.strata] == [None, (5,)]


def test_messages_are_authenticated_by_the_policy() -> None:
    terms = Policy.from_json(
        json.loads(json.loads((VECTORS / "receipts.json").read_bytes())["policy"])
    )
    case = MESSAGES["activation"]
    policy = replace(
        terms,
        window=MESSAGES["window"],
        activation_instants=(1_799_999_400, 1_800_003_000, 1_800_007_200),
        keys=replace(terms.keys, verifier=PUBLIC),
    )
    anchor = bytes.fromhex(case["anchor"])
    activation = Activation.parse(case["message"].encode())
    activation.authenticate(policy, anchor=anchor, number=1)
    assert activation.preimage.hex() == case["preimages"]["1"]
    found = Challenge.parse(MESSAGES["challenge"].encode())
    found.authenticate(policy, anchor=anchor)
    assert [each.sample for each in found.strata] == [(2, 5), (5,)]
    with pytest.raises(SignatureRejected):
        found.authenticate(
            replace(policy, keys=replace(policy.keys, verifier=OTHER)), anchor=anchor
        )


def test_record_leaf_noise_key_and_contexts() -> None:
    case = MESSAGES["record"]
    body = bytes.fromhex(case["body"])
    record = Record.parse(body)
    assert record.encode() == body
    assert leaf_data(bytes.fromhex(case["salt"]), "record", body).hex() == case["leaf"]
    randomness = bytes.fromhex(case["randomness"])
    found = noise_key(
        bytes.fromhex(case["key"]), window=record.window, tenant=record.tenant,
        version=record.version, pseudonym=record.pseudonym, epoch=record.epoch, slot=record.slot,
        counter=record.counter, activation_randomness=randomness, nonce=record.nonce or b"",
    )  # fmt: skip
    assert found.hex() == case["noise_key"]
    policy, index_root = bytes.fromhex(case["policy_digest"]), bytes.fromhex(case["index_root"])
    assert record.policy_digest == policy
    commitments = bytes(64)
    of_index = IndexStatement.of(
        policy_digest=policy, window=record.window, tenant=record.tenant, version=record.version,
        index_root=index_root, dimension=4, commitments=commitments,
    )  # fmt: skip
    of_selection = SelectionStatement.of(
        record, body=body, index_root=index_root, commitments=commitments,
        seed_root=bytes.fromhex(case["seed_root"]), activation_randomness=randomness,
        query=np.zeros(4, dtype=np.int16), noise=np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    assert (of_index.context.hex(), of_selection.context.hex()) == (
        case["index_context"],
        case["selection_context"],
    )


@pytest.mark.parametrize("case", MESSAGES["responses"], ids=lambda case: str(case["query"]))
def test_response(case: dict[str, Any]) -> None:
    read = Response.parse(bytes.fromhex(case["message"]), dimension=4)
    assert read.index == 17 and read.key.key == vector("k")
    assert read.key.counter_path == tuple(vector(f"counter {i}") for i in range(6))
    assert read.key.slot_path == tuple(vector(f"slot {i}") for i in range(2))
    asked = None if case["query"] is None else Question(case["query"]).data
    assert read.query == asked
    assert read.salt_q == (None if asked is None else vector("salt q"))
    assert np.array_equal(read.embedding, [100, -70, 3, 0])
    assert (read.salt_e, read.salt_f, read.filter) == (vector("salt e"), vector("salt f"), b"")
    assert (read.salt_s, read.sketch) == (vector("salt s"), vector("sketch")[:8])
    assert read.proof == b"stands for the proof"
    assert read.encode().hex() == case["message"]


def test_handover() -> None:
    read = list(read_handover(io.BytesIO(bytes.fromhex(MESSAGES["handover"]))))
    assert [(each.index, each.kind) for each in read] == [
        (0, "opening"),
        (1, "record"),
        (2, "close"),
    ]
    assert [each.salt for each in read] == [vector(f"salt {i}") for i in range(3)]
    assert read[1].body.hex() == MESSAGES["record"]["body"]
    assert (read[1].salt_s, read[1].sketch) == (vector("salt s"), vector("sketch")[:8])
    assert (read[0].salt_s, read[0].sketch) == (b"", b"")
    assert write_handover(read).hex() == MESSAGES["handover"]


@pytest.mark.parametrize("draw", MESSAGES["samples"][0]["draws"], ids=lambda d: f"{d['audit']}")
def test_sample_draw(draw: dict[str, Any]) -> None:
    case, audit = MESSAGES["samples"][0], draw["audit"]
    seed = sampling_seed(bytes.fromhex(case["final_root"]), bytes.fromhex(case["preimage"]))
    assert seed.hex() == case["seed"]
    found = draw_sample(
        (
            LoggedRecord(each["index"], each["tenant"], bytes.fromhex(each["pseudonym"]))
            for each in reversed(case["records"])
        ),
        tenants=case["tenants"],
        receipts=set(case["receipts"]),
        rule=AuditTerms(
            mode=audit["mode"],
            beta=audit["beta"],
            tenants=StratumTerms(**audit["tenants"]),
            submitters=SubmitterTerms(**audit["submitters"]),
            deadline_seconds=1,
        ),
        seed=seed,
    )
    assert [
        {
            "id": each.stratum.id,
            "population": list(each.stratum.population),
            "sample": list(each.sample),
        }
        for each in found
    ] == draw["strata"]


@pytest.mark.parametrize("case", MESSAGES["bundles"], ids=lambda case: str(case["part"]))
def test_bundle(case: dict[str, Any]) -> None:
    items = {name: bytes.fromhex(data) for name, data in case["items"].items()}
    archive = base64.b64decode(case["archive"])
    written = io.BytesIO()
    evidence = Evidence(list(items), items.__getitem__)
    write_archive(written, evidence, case["verdict"].encode(), part=case["part"])
    assert written.getvalue() == archive
    read = read_archive(io.BytesIO(archive))
    assert read.part == case["part"] and read.verdict == case["verdict"].encode()
    assert {name: read.evidence[name] for name in read.evidence} == {
        name: data
        for name, data in items.items()
        if case["part"] == "all" or name.startswith("public/")
    }


@pytest.mark.parametrize("case", EPSILON["cases"], ids=lambda case: case["arguments"]["sigma"])
def test_epsilon_table(case: dict[str, Any]) -> None:
    found = epsilon_report(gamma=Fraction(1, 2**100), **case["arguments"])
    assert canonical_json.dumps(found.to_json()) == canonical_json.dumps(case["table"])
    assert EpsilonTable.from_json(case["table"]) == found


@for_each("case", EPSILON["cases"])
def test_the_cross_check_needs_no_library(case: dict[str, Any]) -> None:
    """The row of 7.4 that another library computes, from the chapter's definition of it."""
    from mpmath import mpf, sqrt

    module = script("make_epsilon")
    terms, table = case["arguments"], case["table"]
    queries = terms["coalition"] * terms["queries_per_account"]
    squared = table["parameters"]["squared_sensitivity_units"] * queries
    mu = sqrt(module.number(Fraction(squared) / (Fraction(terms["sigma"]) * 127**2) ** 2))
    # The table's epsilon of the limit is rounded up by less than the cross-check's tolerance.
    reference = mpf(table["gaussian_limit"]["epsilon"])
    found = module.loss_distribution(mu, module.number(terms["delta_policy"]), reference)
    assert canonical_json.dumps(found) == canonical_json.dumps(table["loss_distribution"])
