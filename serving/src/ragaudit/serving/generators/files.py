"""Files about a language model that people write: its manifest, and the texts of its tokens."""

import json
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError

__all__ = ["read_json", "read_tokens"]


def read_json(path: Path) -> Any:
    """Return what a file says, in any spelling of JSON: a digest is of the canonical form.

    Raises:
        MalformedError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise MalformedError(f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON") from error


def read_tokens(path: Path) -> tuple[str, ...]:
    """Return the texts of all tokens, in their order; MalformedError as `read_json`."""
    tokens = read_json(path)
    if not isinstance(tokens, list) or not all(isinstance(each, str) for each in tokens):
        raise MalformedError("not a list of texts")
    return tuple(tokens)
