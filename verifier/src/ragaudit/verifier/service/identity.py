"""What must hold before a window can be filed at all; the rest of a policy is check 1's."""

import re
from collections.abc import Mapping
from typing import Any

from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.messages.policy import FORMAT

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", re.ASCII)  # windows and tenants


def check_identity(policy: dict[str, Any], provider: str, keys: Mapping[str, str | None]) -> str:
    """Check that a policy is ``provider``'s, for this verifier; returns the window's name.

    Args:
        keys: what the members of the policy's ``keys`` must be, all but ``log``.

    Raises:
        MalformedError: no policy, or an ill-formed window name.
        RejectedError: another provider or another key.
    """
    if policy.get("format") != FORMAT:
        raise MalformedError("not a policy", where="policy/format", expected=FORMAT)
    window = policy.get("window")
    if not isinstance(window, str) or NAME.fullmatch(window) is None:
        raise MalformedError("not a window's name", where="policy/window", expected=NAME.pattern)
    if policy.get("provider") != provider:
        raise RejectedError("another provider", where="policy/provider", expected=provider)
    given = policy.get("keys")
    if not isinstance(given, dict):
        raise MalformedError("no keys", where="policy/keys", expected="an object")
    for role, key in keys.items():
        if given.get(role) != key:
            raise RejectedError("another key", where=f"policy/keys/{role}", expected=key or "null")
    return window
