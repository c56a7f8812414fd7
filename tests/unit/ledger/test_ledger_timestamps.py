"""Time stamps of checkpoints, by OpenSSL's authority; nothing but a true one is one."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import StampRejected
from ragaudit.ledger.log.checkpoints import Checkpoint
from ragaudit.ledger.log.timestamps import (
    MAX_TOKEN_BYTES,
    StampRequest,
    read_roots,
    verify_stamp,
)
from ragaudit.ledger.log.tree import MemoryTree
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder
from time_authority import Authority

CHECKPOINT = Checkpoint("provider.example/ragaudit/w1", MemoryTree([b"a", b"b"]).head())
OTHER = Checkpoint("provider.example/ragaudit/w1", MemoryTree([b"a", b"c"]).head())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def token(authority: Authority) -> bytes:
    return authority.answer(StampRequest.of(CHECKPOINT).body)


@pytest.fixture
def roots(authority: Authority) -> Any:
    return read_roots(authority.roots.read_bytes())


def test_a_stamp_says_by_when_the_checkpoint_existed(authority: Authority, roots: Any) -> None:
    before = int(time.time())
    request = StampRequest.of(CHECKPOINT)
    found = verify_stamp(authority.answer(request.body), CHECKPOINT, roots, nonce=request.nonce)
    # Accuracy 1.5 s is added, and the sum rounded up: the stamp never claims too early a time.
    assert before + 2 <= found.not_after <= int(time.time()) + 3
    assert (found.policy, found.serial > 0) == ("1.2.3.4.1", True)


def test_a_stamp_of_another_checkpoint_is_rejected(token: bytes, roots: Any) -> None:
    with pytest.raises(StampRejected, match="another checkpoint"):
        verify_stamp(token, OTHER, roots)


def test_a_stamp_of_an_earlier_request_is_rejected(token: bytes, roots: Any) -> None:
    with pytest.raises(StampRejected, match="Nonce"):
        verify_stamp(token, CHECKPOINT, roots, nonce=StampRequest.of(CHECKPOINT).nonce)
    verify_stamp(token, CHECKPOINT, roots)


def test_an_authority_that_nobody_trusts_is_rejected(token: bytes, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger")
    with pytest.raises(StampRejected):
        verify_stamp(token, CHECKPOINT, read_roots(stranger.roots.read_bytes()))
    with pytest.raises(StampRejected, match=r"[Rr]oot"):
        verify_stamp(token, CHECKPOINT, ())


def test_a_stamp_with_another_hash_is_rejected(authority: Authority, roots: Any) -> None:
    builder = TimestampRequestBuilder().data(CHECKPOINT.text.encode())
    request = builder.hash_algorithm(HashAlgorithm.SHA512).cert_request(cert_request=True).build()
    with pytest.raises(StampRejected, match="another hash"):
        verify_stamp(authority.answer(request.as_bytes()), CHECKPOINT, roots)


def test_a_refusal_of_the_authority_is_no_stamp(authority: Authority, roots: Any) -> None:
    # A request that OpenSSL cannot read is answered with a status, and no token.
    with pytest.raises(StampRejected, match="did not grant"):
        verify_stamp(authority.answer(b"no request"), CHECKPOINT, roots)


def test_a_changed_byte_never_changes_what_a_stamp_says(token: bytes, roots: Any) -> None:
    # Its container has bytes that nothing signs and nobody reads, such as version numbers.
    said, rejected = verify_stamp(token, CHECKPOINT, roots), 0
    for place in range(len(token)):
        changed = bytearray(token)
        changed[place] ^= 1
        try:
            assert verify_stamp(bytes(changed), CHECKPOINT, roots) == said
        except (StampRejected, MalformedError):
            rejected += 1
    assert rejected > 0.9 * len(token)


@pytest.mark.parametrize("data", [b"", b"\x30\x00", b"text", bytes(MAX_TOKEN_BYTES + 1)])
def test_other_bytes_are_no_stamp(data: bytes, roots: Any) -> None:
    with pytest.raises(MalformedError):
        verify_stamp(data, CHECKPOINT, roots)


def test_bytes_behind_a_stamp_are_refused(token: bytes, roots: Any) -> None:
    with pytest.raises(MalformedError):
        verify_stamp(token + b"\0", CHECKPOINT, roots)


@pytest.mark.parametrize("data", [b"", b"-----BEGIN CERTIFICATE-----", b"\xff"])
def test_roots_are_certificates(data: bytes) -> None:
    with pytest.raises(MalformedError, match="no certificates"):
        read_roots(data)


def test_without_the_library_it_says_which_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    with pytest.raises(UnsupportedError, match=r"ragaudit-ledger\[timestamps\]"):
        StampRequest.of(CHECKPOINT)
