"""Write messages.json: what prover and verifier tell each other, to the byte.

Run `python tests/vectors/make_messages.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (chapters 1, 3, 5, 8, 9, 10) alone: standard library and Ed25519, nothing of ours.
"""

import base64
import hashlib
import hmac
import io
import json
import struct
import zipfile
from fractions import Fraction
from itertools import count
from math import ceil, comb
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from make_encoding import pack as enc

FOLDER = Path(__file__).parent
WINDOW, TENANT, PROVIDER = "2026-w47", "clinic-a", "rag.example.com"
ORIGIN = f"{PROVIDER}/ragaudit/{WINDOW}"
START_MS = 1_800_000_000_000


def sha(tag: str, *fields: object) -> bytes:
    return hashlib.sha256(enc("ragaudit/v1/" + tag, *fields)).digest()


def salted(salt: bytes, value: bytes) -> bytes:
    return sha("salted", salt, value)


def canonical(value: object) -> bytes:
    """RFC 8785 for the values used here: ASCII keys, integers, text without control characters."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def some(label: str) -> bytes:
    """32 bytes that stand for a digest, salt, key or preimage."""
    return hashlib.sha256(b"ragaudit messages vector: " + label.encode()).digest()


def signing_key(label: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(some(label))


VERIFIER = signing_key("verifier key")
VERDICT = signing_key("verdict key")


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def message(
    kind: str, fields: dict[str, object], key: Ed25519PrivateKey = VERIFIER
) -> dict[str, object]:
    """A message whose signature covers its members in their order; bytes are shown in hex."""
    shown = {n: value.hex() if isinstance(value, bytes) else value for n, value in fields.items()}
    signed = list(fields.values())
    if "round" in fields:  # number and signature of the beacon's round, both absent without one
        signed += [None]
    signature = key.sign(enc(f"ragaudit/v1/sign/{kind}", *signed)).hex()
    return {"format": f"ragaudit/v1/{kind}", **shown, "signature": signature}


def countersignature_message() -> str:
    """8.4, of an opening with the salt and body given beside it."""
    fields: dict[str, object] = {
        "window": WINDOW,
        "policy_digest": some("policy digest"),
        "opening_digest": sha("opening-digest", some("salt 0"), b"opening body"),
        "terms_digest": some("terms digest"),
        "activation_anchor": some("activation anchor"),
        "time": START_MS - 3_600_000,
    }
    return canonical(message("countersignature", fields)).decode()


def activation_cases() -> dict[str, object]:
    """5.6 and the signed activation of 8.4, for a chain of three instants."""
    last = some("last preimage")
    chain = [last]
    for _ in range(3):
        chain.append(sha("activation", WINDOW, chain[-1]))
    anchor, preimages = chain[3], {1: chain[2], 2: chain[1], 3: chain[0]}
    fields = {"window": WINDOW, "a": 1, "preimage": preimages[1], "covered_size": 17}
    return {
        "last_preimage": last.hex(),
        "anchor": anchor.hex(),
        "preimages": {str(a): preimage.hex() for a, preimage in preimages.items()},
        "randomness": {str(a): sha("rnd", WINDOW, a, preimages[a], None).hex() for a in (1, 2)},
        "message": canonical(
            message("activation", {**fields, "time": START_MS - 600_000, "round": None})
        ).decode(),
    }


def receipts_digest(receipts: list[tuple[int, bytes]]) -> bytes:
    tag = "ragaudit/v1/receipts-list"
    rising = sorted(receipts)
    groups = [rising[at : at + 1000] for at in range(0, len(rising), 1000)]
    packed = [enc(tag, *(part for receipt in group for part in receipt)) for group in groups]
    return hashlib.sha256(enc(tag, *packed)).digest()


def receipts_list(receipts: list[tuple[int, bytes]]) -> dict[str, object]:
    digest, time = receipts_digest(receipts), START_MS + 7_200_000 - 1
    fields = {"window": WINDOW, "digest": digest, "count": len(receipts), "time": time}
    return message("receipts-list", fields)


def receipts_list_cases() -> list[dict[str, object]]:
    """Lists of 0, 1, 1000 and 1001 receipts, given in falling order; 1001 has two of one index."""
    cases: list[dict[str, object]] = []
    for size in (0, 1, 1000, 1001):
        receipts = [(n, some(f"receipt {n}")) for n in range(size)]
        if size == 1001:
            receipts[1000] = (7, some("another receipt 7"))
        listed = canonical(receipts_list(receipts)).decode()
        cases.append({"count": size, "doubled": size == 1001, "message": listed})
    return cases


def challenge_message() -> str:
    unsigned = {
        "format": "ragaudit/v1/challenge",
        "window": WINDOW,
        "final_root": some("final root").hex(),
        "final_size": 60,
        "preimage": some("last preimage").hex(),
        "receipts_list": receipts_list([(5, some("receipt 5"))]),
        "strata": [
            {"id": f"tenant:{TENANT}", "population": None, "sample": [2, 5]},
            {"id": "account:" + some("ann").hex(), "population": [5], "sample": [5]},
        ],
        "deadline": START_MS + 9_000_000,
        "round": None,
    }
    digest = hashlib.sha256(canonical(unsigned)).digest()
    signed = message("challenge", {"window": WINDOW, "digest": digest})
    return canonical({**unsigned, "signature": signed["signature"]}).decode()


def record_body() -> bytes:
    """A record of 5.7; the other cases below speak of it."""
    return enc(
        "ragaudit/v1/entry/record",
        some("policy digest"),
        WINDOW,
        TENANT,
        1,  # v
        520,  # N
        5,  # K
        salted(some("salt f"), b""),
        some("ann"),
        1,  # g
        3,  # slot
        41,  # c
        2,  # a
        START_MS + 1,
        some("nonce"),
        salted(some("salt q"), enc("ragaudit/v1/query", "text", "what is a lease?")),
        salted(some("salt e"), struct.pack("<4h", 100, -70, 3, 0)),
        salted(some("salt s"), some("sketch")[:8]),
        some("stands for C_sel"),
        None,
    )


def record_cases() -> dict[str, object]:
    """Leaf, noise key and both contexts of one record."""
    body, rnd = record_body(), some("rnd 2")
    who = (WINDOW, TENANT, 1, some("ann"), 1, 3, 41)
    noise = enc("ragaudit/v1/noise", *who, rnd, some("nonce"))
    index = (some("policy digest"), WINDOW, TENANT, 1, some("index root"))
    return {
        "body": body.hex(),
        "salt": some("leaf salt").hex(),
        "leaf": sha("leaf", some("leaf salt"), "record", body).hex(),
        "key": some("k").hex(),
        "randomness": rnd.hex(),
        "noise_key": hmac.digest(some("k"), noise, "sha256").hex(),
        "policy_digest": some("policy digest").hex(),
        "index_root": some("index root").hex(),
        "seed_root": some("seed root").hex(),
        "index_context": sha("context/index", *index).hex(),
        "selection_context": sha("context/selection", *index, some("seed root"), rnd, body).hex(),
    }


def response_cases() -> list[dict[str, object]]:
    """8.5 with and without the text."""
    embedding = struct.pack("<4h", 100, -70, 3, 0)
    paths = [[some(f"{kind} {i}") for i in range(n)] for kind, n in (("counter", 6), ("slot", 2))]
    cases: list[dict[str, object]] = []
    for query in ("what is a lease?", None):
        encoded = enc(
            "ragaudit/v1/response", 17, some("k"), b"".join(paths[0]), b"".join(paths[1]),
            None if query is None else some("salt q"),
            None if query is None else enc("ragaudit/v1/query", "text", query),
            some("salt e"), embedding,
            some("salt f"), "", some("salt s"), some("sketch")[:8], b"stands for the proof",
        )  # fmt: skip
        cases.append({"query": query, "message": encoded.hex()})
    return cases


def handover_frames() -> str:
    """8.3: an opening, a record and a close entry; their bodies are read by nobody here."""
    entries = [
        ("opening", b"opening body", None, None),
        ("record", record_body(), some("salt s"), some("sketch")[:8]),
        ("close", b"close body", None, None),
    ]
    out = b""
    for index, (kind, body, salt_s, sketch) in enumerate(entries):
        frame = enc(
            "ragaudit/v1/handover", index, kind, some(f"salt {index}"), body, salt_s, sketch
        )
        out += struct.pack("<Q", len(frame)) + frame
    return out.hex()


def sample_size(n: int, beta: Fraction, eta: Fraction) -> int:
    bad = ceil(beta * n)
    if bad == n:  # also for an empty stratum
        return n
    return next(s for s in count() if Fraction(comb(n - bad, s), comb(n, s)) <= eta)


def sample_cases() -> list[dict[str, object]]:
    """9.1: 61 records of two of three tenants, every third with a submitted receipt."""
    accounts = [some(f"account {i}") for i in range(4)]
    records = [
        {"index": 3 + i, "tenant": ("a", "b")[i % 2], "pseudonym": accounts[i % 4].hex()}
        for i in range(60)
    ]
    records.append({"index": 63, "tenant": "b", "pseudonym": some("alone").hex()})
    receipts = [*(3 + i for i in range(0, 60, 3)), 63]
    root, preimage = some("final root"), some("last preimage")
    seed = sha("sampling", root, b"", preimage)
    cases: list[dict[str, object]] = []
    for mode, by in (("A", "account"), ("B", "account"), ("B", "tenant")):
        audit = {
            "mode": mode,
            "beta": "0.1",
            "tenants": {"eta": "0.05", "minimum": 4},
            "submitters": {"by": by, "eta": "0.5", "minimum": 1},
        }
        strata = []
        for tenant in ("a", "b", "c"):
            mine = [int(str(each["index"])) for each in records if each["tenant"] == tenant]
            strata.append((f"tenant:{tenant}", "tenants", mine))
        groups: dict[str, list[int]] = {}
        for each in records:
            if each["index"] in receipts:
                kind, member = {"account": ("account", "pseudonym")}.get(by, ("receipts", by))
                groups.setdefault(f"{kind}:{each[member]}", []).append(int(str(each["index"])))
        strata += [(key, "submitters", groups[key]) for key in sorted(groups)]
        drawn = []
        for name, kind, population in strata:
            terms = audit[kind]
            assert isinstance(terms, dict)
            n = len(population)
            size = sample_size(n, Fraction("0.1"), Fraction(str(terms["eta"])))
            size = n if mode == "A" else max(size, min(n, int(str(terms["minimum"]))))

            def rank(index: int, name: str = name) -> bytes:
                return hmac.digest(seed, enc("ragaudit/v1/sample", name, index), "sha256")

            sample = sorted(sorted(population, key=rank)[:size])
            drawn.append({"id": name, "population": population, "sample": sample})
        cases.append({"audit": audit, "strata": drawn})
    return [
        {
            "tenants": ["a", "b", "c"],
            "records": records,
            "receipts": receipts,
            "final_root": root.hex(),
            "preimage": preimage.hex(),
            "seed": seed.hex(),
            "draws": cases,
        }
    ]


def bundle_cases() -> list[dict[str, object]]:
    """10.2: the archive as the standard library writes it, with what the chapter fixes."""
    items = {
        "public/policy.json": b'{"not":"a policy"}',
        "public/leaves.bin": bytes(range(64)),
        "confidential/claims.json": b"[]",
    }
    cases: list[dict[str, object]] = []
    for part in ("public", "all"):
        chosen = {n: data for n, data in items.items() if part == "all" or n.startswith("public/")}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in chosen.items()}
        manifest = {"format": "ragaudit/v1/bundle", "items": digests, "part": part}
        files = {**chosen, "manifest.json": canonical(manifest), "verdict.json": b"{}"}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(files):
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.create_system = 0
                info.create_version = info.extract_version = 10
                archive.writestr(info, files[name])
                info.external_attr = 0  # the library puts permissions there
        archive64 = base64.b64encode(buffer.getvalue()).decode()
        shown = {name: data.hex() for name, data in items.items()}
        cases.append({"part": part, "items": shown, "verdict": "{}", "archive": archive64})
    return cases


REFUSED = {
    "integrity": (
        "The verifier refused to countersign the opening of this window; nothing in it is audited."
    ),
    "privacy": "No guarantee of privacy follows from this window.",
}
"""What the claims of a refusal state (10.6)."""


def verdict_envelope() -> str:
    """10.3: DSSE over an in-toto statement; the predicate's values are made up."""
    items = ("public/leaves.bin", "public/policy.json")
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in items}
    check = {"number": 1, "id": "policy", "status": "PASS", "reason": "é", "evidence": ["e"]}
    predicate = {
        "window": WINDOW,
        "provider": PROVIDER,
        "result": "REFUSED",
        "worthless": False,
        "terms": some("terms digest").hex(),
        "time": START_MS,
        "engine": "core",
        "checks": [{**check, "status": "FAIL"}],
        **{name: {} for name in ("epsilon", "sampling", "counts", "coalition", "scope")},
        "not_covered": ["n"],
        "assumptions": ["a"],
        "claims": {
            name: {"result": "REFUSED", "statement": said, "open": []}
            for name, said in REFUSED.items()
        },
    }
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": n, "digest": {"sha256": digest}} for n, digest in digests.items()],
        "predicateType": "https://ragaudit.dev/verdict/v1",
        "predicate": predicate,
    }
    kind, payload = "application/vnd.in-toto+json", canonical(statement)
    signature = VERDICT.sign(f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload)
    keyid = hashlib.sha256(public(VERDICT)).hexdigest()
    signatures = [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}]
    shown = {"payload": base64.b64encode(payload).decode(), "payloadType": kind}
    return canonical({**shown, "signatures": signatures}).decode()


def account_messages() -> dict[str, object]:
    """5.10: what an account signs with its dispute key, and a finding of the arbiter."""
    account, arbiter = signing_key("dispute key"), signing_key("arbiter key")

    def by(key: Ed25519PrivateKey, kind: str, fields: dict[str, object]) -> str:
        return canonical(message(kind, fields, key)).decode()

    file_digest = sha("receipt/file", b'{"stands":"for a receipt file"}')
    who: dict[str, object] = {"origin": ORIGIN, "pseudonym": some("ann")}
    answer = {"index": 17, "answer_digest": some("answer"), "file_digest": file_digest}
    disputed = {**who, **answer}
    submitted = [b'{"stands":"for a receipt"}', b'{"stands":"for another"}']
    finding = {"origin": ORIGIN, **answer, "step": 8, "time": START_MS + 8}
    return {
        "dispute_key": public(account).hex(),
        "arbiter_key": public(arbiter).hex(),
        "statements": [
            by(account, "registration-statement", {**who, "anchor": anchor})
            for anchor in (some("nonce anchor"), None)
        ],
        "holder": by(account, "holder-statement", {**who, "digest": sha("submission", *submitted)}),
        "submission": [each.decode() for each in submitted],
        "dispute": by(account, "dispute", disputed),
        "dispute_identity": sha("dispute", *disputed.values()).hex(),
        "finding": by(arbiter, "finding", finding),
    }


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_messages.py, from docs/spec alone",
        "window": WINDOW,
        "verifier_seed": some("verifier key").hex(),
        "verifier_key": public(VERIFIER).hex(),
        "verdict_seed": some("verdict key").hex(),
        "countersignature": countersignature_message(),
        "activation": activation_cases(),
        "receipts_lists": receipts_list_cases(),
        "challenge": challenge_message(),
        "record": record_cases(),
        "responses": response_cases(),
        "handover": handover_frames(),
        "samples": sample_cases(),
        "bundles": bundle_cases(),
        "verdict": verdict_envelope(),
        "accounts": account_messages(),
    }
    return {"messages.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
