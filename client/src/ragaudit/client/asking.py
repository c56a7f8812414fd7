"""What an account asks, in the form of its window's policy (docs/spec/05-records.md §5.8)."""

from collections.abc import Sequence
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Request
from ragaudit.ledger.messages.vectors import float32_bytes

__all__ = ["Asked", "check_asked", "request_body", "request_of", "words_request"]

Asked = str | Sequence[float]
"""A text, or the application's own vector of d numbers."""


def check_asked(asked: Asked, top_k: int) -> None:
    """Check what needs no policy, before anything is sent.

    Args:
        asked: 1 to 8,192 bytes of UTF-8, or numbers.
        top_k: K.

    Raises:
        MalformedError: not a query.
    """
    if isinstance(asked, str):
        try:
            length = len(asked.encode())
        except UnicodeEncodeError as error:
            raise MalformedError("text has lone surrogates", where="query") from error
        if not 1 <= length <= MAX_QUERY_BYTES:
            raise MalformedError(f"{length} bytes", where="query", expected=f"1..{MAX_QUERY_BYTES}")
    # Not isinstance: True would ask for one row.
    if type(top_k) is not int or top_k < 1:
        raise MalformedError(f"{top_k!r}", where="top_k", expected="1 or more")


def request_of(
    policy: Policy, asked: Asked, top_k: int, wanted: str, counter: int | None = None
) -> Request:
    """Return the request in the form of a window.

    Args:
        policy: of the window.
        asked: checked; a vector is rounded to 32 bits, and these are what is asked.
        top_k: K.
        wanted: the filter's canonical text; empty for none.
        counter: of an anchored account.

    Raises:
        MalformedError, UnsupportedError: the window takes no such request.
    """
    if top_k > policy.top_k_max:
        raise MalformedError(f"K = {top_k}", where="top_k", expected=f"1..{policy.top_k_max}")
    try:
        question = asked if isinstance(asked, str) else float32_bytes([float(x) for x in asked])
    except (TypeError, ValueError, OverflowError) as error:
        raise MalformedError("not numbers of 32 bits", where="vector") from error
    return Request.of(policy, question, top_k, filter=wanted, counter=counter)


def words_request(policy: Policy, question: str, wanted: str) -> GenerationRequest:
    """Return the request of a question to be answered in words.

    Args:
        policy: of the window.
        question: checked.
        wanted: the filter's canonical text; empty for none.

    Raises:
        MalformedRecord, UnsupportedError: the window takes no such request.
    """
    request = GenerationRequest(question, wanted)
    request.check_policy(policy)
    return request


def request_body(request: Request | GenerationRequest) -> dict[str, Any]:
    """Return the body that asks a request (spec 8.6).

    Its kind shows in its members, and a plain account names no counter.
    """
    members = request.to_json()
    members.pop("kind", None)
    if request.counter is None:
        del members["counter"]
    return members
