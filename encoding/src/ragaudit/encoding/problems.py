"""RFC 9457 problem documents: made from errors, and read."""

import re
from collections.abc import Mapping

from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RagauditError,
    RefusedError,
    UnavailableError,
)

MEDIA_TYPE = "application/problem+json"

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def problem_name(kind: type[RagauditError]) -> str:
    """Return the kebab-case name of an error class without its ``Error`` suffix.

    Args:
        kind: of the error; the names that both services use stand in docs/spec/08-services.md.
    """
    return _WORD_START.sub("-", kind.__name__.removesuffix("Error") or "error").lower()


def problem(error: RagauditError, status: int, instance: str | None = None) -> dict[str, object]:
    """Return the problem document for ``error`` (RFC 9457 §3), its extension included, for JSON.

    Args:
        error: the error; an InternalError is described without its text, which may
            name internals.
        status: the HTTP status code, 400 to 599.
        instance: URI reference of this occurrence, if there is one.

    Raises:
        ValueError: ``status`` is not an error status.
    """
    if not 400 <= status <= 599:
        raise ValueError(f"status {status} is not an HTTP error status")
    name = problem_name(type(error))
    members: Mapping[str, str | None]
    if isinstance(error, InternalError):
        # The error's own text may name internals, or quote what a request held.
        members = {"detail": "An internal error occurred; it has been logged."}
    else:
        members = {"detail": str(error), "where": error.where, "expected": error.expected}
    document: dict[str, object] = {
        "type": f"urn:ragaudit:problem:{name}",
        "title": name.replace("-", " ").capitalize(),
        "status": status,
    }
    document.update({key: value for key, value in members.items() if value})
    document.update(error.extension)
    if instance is not None:
        document["instance"] = instance
    return document


def family_of(status: int) -> type[RagauditError]:
    """Return what another party's refusal is to the caller: bad input, no answer now, or declined.

    A party that cannot parse, or does not know, what it was sent answers 400, 413, 415 or 422; one
    that is out of order 500 or more.

    Args:
        status: of HTTP, 400 to 599.
    """
    if status >= 500:
        return UnavailableError
    return MalformedError if status in (400, 413, 415, 422) else RefusedError


def reason(document: object) -> str:
    """Return what a problem document of another party says in words: its detail, else its title.

    Empty if ``document``, any JSON value, is no such document.

    Args:
        document: the body of a reply, as a JSON reader gives it.
    """
    if not isinstance(document, Mapping):
        return ""
    texts = (document.get("detail"), document.get("title"))
    return next((text for text in texts if isinstance(text, str) and text), "")
