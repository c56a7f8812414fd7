"""A time stamp of a checkpoint, as we ask for it and keep it, judged by openssl."""

import subprocess
from pathlib import Path

import pytest
from ragaudit.ledger.log.checkpoints import Checkpoint
from ragaudit.ledger.log.timestamps import StampRequest, read_roots, verify_stamp
from ragaudit.ledger.log.tree import MemoryTree
from time_authority import Authority

pytestmark = pytest.mark.strangers

CHECKPOINT, OTHER = (
    Checkpoint("provider.example/ragaudit/w1", MemoryTree([b"a", last]).head())
    for last in (b"b", b"c")
)


def test_openssl_judges_the_stamp_that_is_kept(openssl: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    stranger = Authority(tmp_path / "stranger")
    token = authority.answer(StampRequest.of(CHECKPOINT).body)
    verify_stamp(token, CHECKPOINT, read_roots(authority.roots.read_bytes()))
    (tmp_path / "token").write_bytes(token)

    def judged(checkpoint: Checkpoint, roots: Path) -> bool:
        (tmp_path / "text").write_text(checkpoint.text, encoding="utf-8")
        words = ["ts", "-verify", "-data", "text", "-in", "token", "-CAfile", str(roots)]
        done = subprocess.run(
            [openssl, *words], cwd=tmp_path, capture_output=True, check=False, timeout=60
        )
        return done.returncode == 0

    assert judged(CHECKPOINT, authority.roots)
    assert not judged(OTHER, authority.roots)
    assert not judged(CHECKPOINT, stranger.roots)
