"""Hashing in the reference verifier: RFC 9380, RFC 8439, generators, transcript."""

from __future__ import annotations

import json
from hashlib import shake_256

import pytest
from ragaudit.verifier.reference.chacha20 import block, key_stream
from ragaudit.verifier.reference.generators import expand_message_xmd, generator
from ragaudit.verifier.reference.ristretto import encode
from ragaudit.verifier.reference.transcript import Transcript
from reference_vectors import FOLDER

SHARED = json.loads((FOLDER / "generators_and_transcript.json").read_text())

# RFC 9380 appendix K.3, expand_message_xmd with SHA-512.
DST = b"QUUX-V01-CS02-with-expander-SHA512-256"
MESSAGES = [b"", b"abc", b"abcdef0123456789", b"q128_" + b"q" * 128, b"a512_" + b"a" * 512]
EXPANDED = {
    0x20: [
        "6b9a7312411d92f921c6f68ca0b6380730a1a4d982c507211a90964c394179ba",
        "0da749f12fbe5483eb066a5f595055679b976e93abe9be6f0f6318bce7aca8dc",
        "087e45a86e2939ee8b91100af1583c4938e0f5fc6c9db4b107b83346bc967f58",
        "7336234ee9983902440f6bc35b348352013becd88938d2afec44311caf8356b3",
        "57b5f7e766d5be68a6bfe1768e3c2b7f1228b3e4b3134956dd73a59b954c66f4",
    ],
    0x80: [
        "41b037d1734a5f8df225dd8c7de38f851efdb45c372887be655212d07251b921"
        "b052b62eaed99b46f72f2ef4cc96bfaf254ebbbec091e1a3b9e4fb5e5b619d2e"
        "0c5414800a1d882b62bb5cd1778f098b8eb6cb399d5d9d18f5d5842cf5d13d7e"
        "b00a7cff859b605da678b318bd0e65ebff70bec88c753b159a805d2c89c55961",
        "7f1dddd13c08b543f2e2037b14cefb255b44c83cc397c1786d975653e36a6b11"
        "bdd7732d8b38adb4a0edc26a0cef4bb45217135456e58fbca1703cd6032cb134"
        "7ee720b87972d63fbf232587043ed2901bce7f22610c0419751c065922b48843"
        "1851041310ad659e4b23520e1772ab29dcdeb2002222a363f0c2b1c972b3efe1",
        "3f721f208e6199fe903545abc26c837ce59ac6fa45733f1baaf0222f8b7acb04"
        "24814fcb5eecf6c1d38f06e9d0a6ccfbf85ae612ab8735dfdf9ce84c372a77c8"
        "f9e1c1e952c3a61b7567dd0693016af51d2745822663d0c2367e3f4f0bed827f"
        "eecc2aaf98c949b5ed0d35c3f1023d64ad1407924288d366ea159f46287e61ac",
        "b799b045a58c8d2b4334cf54b78260b45eec544f9f2fb5bd12fb603eaee70db7"
        "317bf807c406e26373922b7b8920fa29142703dd52bdf280084fb7ef69da78af"
        "df80b3586395b433dc66cde048a258e476a561e9deba7060af40adf30c64249c"
        "a7ddea79806ee5beb9a1422949471d267b21bc88e688e4014087a0b592b695ed",
        "05b0bfef265dcee87654372777b7c44177e2ae4c13a27f103340d9cd11c86cb2"
        "426ffcad5bd964080c2aee97f03be1ca18e30a1f14e27bc11ebbd650f305269c"
        "c9fb1db08bf90bfc79b42a952b46daf810359e7bc36452684784a64952c343c5"
        "2e5124cd1f71d474d5197fefc571a92929c9084ffe1112cf5eea5192ebff330b",
    ],
}


@pytest.mark.parametrize("length", EXPANDED)
def test_expand_message_xmd(length: int) -> None:
    for message, expected in zip(MESSAGES, EXPANDED[length], strict=True):
        assert expand_message_xmd(message, DST, length).hex() == expected


def test_chacha20_block() -> None:
    """RFC 8439 §2.3.2."""
    nonce = bytes.fromhex("000000090000004a00000000")
    assert block(bytes(range(32)), 1, nonce).hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        # RFC 8439 appendix A.1, test vectors 1 and 2: zero key, zero nonce.
        (
            bytes(32),
            0,
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
        ),
        (
            bytes(32),
            1,
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
            "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
        ),
    ],
)
def test_key_stream(key: bytes, counter: int, expected: str) -> None:
    assert block(key, counter, bytes(12)).hex() == expected
    assert key_stream(key, 64 * (counter + 1))[-64:].hex() == expected
    assert key_stream(key, 64 * counter + 5)[-5:].hex() == expected[:10]


@pytest.mark.parametrize("case", SHARED["generators"], ids=lambda c: f"{c['list']}-{c['index']}")
def test_generators(case: dict[str, object]) -> None:
    point = generator(str(case["list"]), int(str(case["index"])))
    assert encode(point).hex() == case["point"]


def test_transcript() -> None:
    first, *operations = SHARED["transcript"]
    transcript = Transcript(first["argument"])
    assert transcript.state.hex() == first["state"]
    for operation in operations:
        if operation["op"] == "absorb":
            transcript.absorb(operation["tag"], bytes.fromhex(operation["message"]))
        elif operation["op"] == "scalar":
            value = transcript.scalar(operation["tag"])
            assert value.to_bytes(32, "little").hex() == operation["value"]
        else:
            assert operation["op"] == "bits"
            assert list(transcript.bits(operation["tag"], operation["n"])) == operation["value"]
        assert transcript.state.hex() == operation["state"]


def test_bits_are_the_stream_least_significant_first() -> None:
    transcript = Transcript("x")
    bits = transcript.bits("projections", 13)
    stream = shake_256(b"\x04" + transcript.state).digest(2)
    assert len(bits) == 13
    assert [*bits] == [stream[i >> 3] >> (i & 7) & 1 for i in range(13)]
