"""What a request and a promise must be, whoever asks (spec 5.8, 8.3)."""

from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.messages.chains import NONCE_BYTES
from ragaudit.ledger.messages.claims import Claim
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Request
from ragaudit.prover.errors import MalformedQuery


def check_request(request: Request, rows: int, policy: Policy) -> None:
    """Check a request to an index of so many rows.

    Raises:
        MalformedQuery: its text, K or filter.
    """
    try:
        length = len(request.query.encode("utf-8"))
    except UnicodeEncodeError:
        raise MalformedQuery("text has lone surrogates", where="query") from None
    if not 1 <= length <= MAX_QUERY_BYTES:
        raise MalformedQuery(
            f"query of {length} bytes", where="query", expected=f"1..{MAX_QUERY_BYTES}"
        )
    most = min(policy.top_k_max, rows - 1)
    if not 1 <= request.top_k <= most:
        raise MalformedQuery(f"K is {request.top_k}", where="top_k", expected=f"1..{most}")
    if request.filter:
        raise MalformedQuery("filters are not supported", where="filter", expected='""')


def check_claim(promise: Promise) -> None:
    """Check that an account could claim the promise; its library reveals nothing otherwise.

    Raises:
        MalformedQuery: the claim would be too long.
    """
    try:
        Claim(promise, bytes(NONCE_BYTES)).encode()
    except RefusedError as error:
        raise MalformedQuery(error.what, where="query", expected=error.expected) from error
