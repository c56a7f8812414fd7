"""What the validating library found wrong, in words: one place for settings and for calls."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from ragaudit.encoding.text import DECIMAL

__all__ = ["DECIMAL_PATTERN", "HEX32_PATTERN", "NAME_PATTERN", "PROVIDER_PATTERN", "first_fault"]

PROVIDER_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$"
NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"
DECIMAL_PATTERN = f"^{DECIMAL}$"
HEX32_PATTERN = r"^[0-9a-f]{64}$"

# A regular expression explains nothing to whoever did not write it.
_PATTERNS_IN_WORDS = {
    PROVIDER_PATTERN: "1 to 64 of a-z, 0-9, inner . and -",
    NAME_PATTERN: "1 to 64 of a-z, 0-9 and inner -",
    DECIMAL_PATTERN: 'a decimal in quotes such as "0.25", at most 12 places, no exponent',
    HEX32_PATTERN: "64 digits 0-9a-f",
}


def first_fault(error: ValidationError) -> tuple[str, str, str]:
    """Return where the first fault is, what is wrong and what would be right.

    The value itself is left out: it may be a secret.

    Args:
        error: of the validating library, with one fault at least.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    return (".".join(map(str, first["loc"])), *in_words(first))


def in_words(fault: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is wrong and what would be right, of one fault as the library lists it.

    Args:
        fault: an item of `ValidationError.errors()`.
    """
    pattern = fault.get("ctx", {}).get("pattern")
    if pattern in _PATTERNS_IN_WORDS:
        return "not in the form that is demanded", _PATTERNS_IN_WORDS[pattern]
    if fault["type"] == "extra_forbidden":
        return "no such member", ""
    if fault["type"] == "value_error":
        what, _, expected = str(fault["msg"]).removeprefix("Value error, ").partition("; expected ")
        return what, expected
    return str(fault["msg"]), ""
