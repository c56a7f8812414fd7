"""Our signatures, read by securesystemslib and by openssl: verdicts, checkpoints, cosignatures."""

import base64
import json
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.ledger.messages.signed import key_id
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.ledger.messages.verdict_exports import VerificationResult
from report_cases import KEY, signed
from report_cases_claims import unnoised
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

pytestmark = pytest.mark.strangers

FROZEN = Path(__file__).parents[1] / "frozen" / "0.1.0"
KEYS = json.loads((FROZEN / "keys.json").read_bytes())
VERDICT = PublicKey.from_raw(bytes.fromhex(KEYS["verdict"]))
OTHER = PrivateKey.from_seed(b"o" * 32).public
PEM = "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n"
# SubjectPublicKeyInfo of Ed25519 (RFC 8410), before the 32 bytes of the key.
SPKI = bytes.fromhex("302a300506032b6570032100")

Openssl = Callable[[PublicKey, bytes, bytes], str]


def theirs(key: PublicKey) -> SSlibKey:
    """A key as securesystemslib has it, under the id that our envelopes name."""
    return SSlibKey(key_id(key), "ed25519", "ed25519", {"public": key.raw.hex()})


def envelope(data: bytes) -> Envelope:
    return Envelope.from_dict(json.loads(data))


@pytest.fixture
def verified(openssl: str, tmp_path: Path) -> Openssl:
    """What openssl says of a signature."""

    def run(key: PublicKey, message: bytes, signature: bytes) -> str:
        (tmp_path / "key.pem").write_text(PEM.format(base64.b64encode(SPKI + key.raw).decode()))
        (tmp_path / "message").write_bytes(message)
        (tmp_path / "signature").write_bytes(signature)
        words = ["pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "message"]
        done = subprocess.run(
            [openssl, *words, "-sigfile", "signature"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout.strip()

    return run


def flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def test_securesystemslib_accepts_the_verdict_of_a_whole_audit() -> None:
    found = envelope((FROZEN / "verdict.json").read_bytes())
    assert found.verify([theirs(VERDICT)], 1) == {key_id(VERDICT): theirs(VERDICT)}
    assert json.loads(found.payload)["predicate"]["result"] == "PASS"


def test_securesystemslib_accepts_a_verification_result() -> None:
    data = VerificationResult.of(signed(unnoised())).issue(KEY)
    envelope(data).verify([theirs(KEY.public)], 1)


def test_securesystemslib_rejects_another_key_and_another_payload() -> None:
    data = json.loads((FROZEN / "verdict.json").read_bytes())
    with pytest.raises(VerificationError):
        envelope(json.dumps(data).encode()).verify([theirs(OTHER)], 1)
    under_our_id = SSlibKey(key_id(VERDICT), "ed25519", "ed25519", {"public": OTHER.raw.hex()})
    with pytest.raises(VerificationError):
        envelope(json.dumps(data).encode()).verify([under_our_id], 1)
    payload = base64.b64decode(data["payload"]).replace(b'"PASS"', b'"FAIL"')
    data["payload"] = base64.b64encode(payload).decode()
    with pytest.raises(VerificationError):
        envelope(json.dumps(data).encode()).verify([theirs(VERDICT)], 1)


def test_openssl_judges_the_verdict(verified: Openssl) -> None:
    data = (FROZEN / "verdict.json").read_bytes()
    Verdict.verify(data, VERDICT)
    document = json.loads(data)
    payload, kind = base64.b64decode(document["payload"]), document["payloadType"].encode()
    signature = base64.b64decode(document["signatures"][0]["sig"])
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    assert verified(VERDICT, message, signature) == "Signature Verified Successfully"
    assert verified(VERDICT, message, flipped(signature)) == "Signature Verification Failure"
    assert verified(VERDICT, flipped(message), signature) == "Signature Verification Failure"
    assert verified(OTHER, message, signature) == "Signature Verification Failure"


def signature_lines() -> tuple[bytes, dict[str, bytes]]:
    """Text of the frozen final checkpoint, and its signatures by the name of the key."""
    with zipfile.ZipFile(FROZEN / "bundle.zip") as bundle:
        note = bundle.read("public/final-checkpoint.txt")
    text, _, lines = note.partition(b"\n\n")
    found: dict[str, bytes] = {}
    for line in lines.decode().splitlines():
        _, name, blob = line.split(" ")
        found[name] = base64.b64decode(blob)
    return text + b"\n", found


def public_of(vkey: str) -> tuple[str, PublicKey]:
    name, _, blob = vkey.split("+", 2)
    return name, PublicKey.from_raw(base64.b64decode(blob)[1:])


def test_openssl_judges_checkpoint_and_cosignature(verified: Openssl) -> None:
    text, lines = signature_lines()
    log, log_key = public_of(KEYS["log"])
    cosigner, cosigner_key = public_of(KEYS["cosigner"])
    good, bad = "Signature Verified Successfully", "Signature Verification Failure"
    assert verified(log_key, text, lines[log][4:]) == good
    assert verified(log_key, flipped(text), lines[log][4:]) == bad
    (time,) = struct.unpack(">Q", lines[cosigner][4:12])
    cosigned = b"cosignature/v1\ntime %d\n%b" % (time, text)
    assert verified(cosigner_key, cosigned, lines[cosigner][12:]) == good
    later = b"cosignature/v1\ntime %d\n%b" % (time + 1, text)
    assert verified(cosigner_key, later, lines[cosigner][12:]) == bad


def test_what_securesystemslib_writes_is_byte_for_byte_ours() -> None:
    ours: dict[str, Any] = json.loads(VerificationResult.of(signed(unnoised())).issue(KEY))
    found = Envelope(base64.b64decode(ours["payload"]), ours["payloadType"], {})
    private = Ed25519PrivateKey.from_private_bytes(KEY.seed())
    found.sign(CryptoSigner(private, theirs(KEY.public)))
    assert found.to_dict() == ours
