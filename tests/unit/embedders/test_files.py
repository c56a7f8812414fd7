"""The files that a manifest names."""

import hashlib
from pathlib import Path

from ragaudit.embedders.base import file_digest


def test_file_digest_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"x" * 3_000_000)
    assert file_digest(path) == hashlib.sha256(b"x" * 3_000_000).hexdigest()
