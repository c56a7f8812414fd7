"""Generators of positions that are read instead of being derived."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from ragaudit import core
from ragaudit.encoding.errors import MalformedError
from ragaudit.verifier import engines

SOME = [0, 1, 2, 70_000, core.KNOWN_POSITIONS - 1, core.KNOWN_POSITIONS, 2**31]

READ = f"""
import sys
from pathlib import Path
from ragaudit import core
from ragaudit.verifier import engines
if len(sys.argv) > 1:
    engines.use_positions(Path(sys.argv[1]))
    engines.use_positions(Path(sys.argv[1]))
print(core.commit_selection({SOME}, bytes([3]) + bytes(31)).hex())
"""


def test_encodings_are_those_of_the_generators() -> None:
    expected = b"".join(core.generator("A", i) for i in range(40))
    assert core.position_encodings(40) == expected
    assert core.position_encodings(0) == b""


@pytest.mark.parametrize("size", [0, 32, 32 * core.KNOWN_POSITIONS - 1])
def test_another_number_of_positions_is_refused(size: int) -> None:
    with pytest.raises(core.MalformedInput, match=f"positions: {size} bytes, expected 33554432"):
        core.use_positions(bytes(size))


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="cannot read"):
        engines.use_positions(tmp_path / "missing")
    (tmp_path / "zeros").write_bytes(bytes(32 * core.KNOWN_POSITIONS))
    with pytest.raises(MalformedError, match="not the encodings of A_0"):
        engines.use_positions(tmp_path / "zeros")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_read_is_what_would_be_derived(tmp_path: Path) -> None:
    """In processes of their own: what was read is there for good."""
    path = tmp_path / "positions"
    engines.write_positions(path)
    data = path.read_bytes()
    for i in SOME[:5]:
        assert data[32 * i : 32 * i + 32] == core.generator("A", i)
    printed = [
        subprocess.run(
            [sys.executable, "-c", READ, *given], check=True, capture_output=True, text=True
        ).stdout
        for given in ([], [str(path)])
    ]
    assert printed[0] == printed[1]
    flipped = bytearray(data)
    flipped[32 * 777] ^= 2
    assert hashlib.sha256(flipped).digest() != hashlib.sha256(data).digest()
    with pytest.raises(core.MalformedInput, match="not the encodings"):
        core.use_positions(bytes(flipped))
