"""The files that a manifest names."""

import hashlib
from pathlib import Path

__all__ = ["file_digest"]

_BLOCK = 2**20


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; OSError if it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
