"""What a window may need of this verifier, against the limits that its operator set.

The specification says what a verifier takes of one window (docs/spec 8.3). One that takes less must
say so before it countersigns: the provider could not know, and its window would fail.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages.handover import LENGTH_BYTES, MAX_FRAME_BYTES, MAX_OPENING_BYTES
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.service import submissions
from ragaudit.verifier.settings import Limits

MOST_VERSIONS: Final = 1000  # later ones of one tenant's index, where the policy allows any
SPECIFIED: Final = Limits()
"""As shipped: what 8.3 says."""

_OTHER_KINDS: Final = 16  # entries beside opening, registrations, records and close, for check 9
_ENTRIES_AT_ONCE: Final = 1000
_JSON_OF_FRAME: Final = 2 * MAX_FRAME_BYTES + 256  # hexadecimal, and the names around it
_REFUSED: Final = "windows that may need more are refused"
_CUT_OFF: Final = "bodies that the specification allows are refused"
_FOLLOWS: Final = {
    "records_bytes": _REFUSED, "entries": _REFUSED, "checkpoints": _REFUSED,
    "submitted_bytes": _REFUSED, "json_bytes": _REFUSED, "index_bytes": _CUT_OFF,
    "version_bytes": _CUT_OFF, "anonymous_bytes": _CUT_OFF, "dispute_bytes": _CUT_OFF,
}  # fmt: skip
"""What follows from a limit below the specification's."""


def shortfalls(limits: Limits) -> Iterator[str]:
    """Yield a line for each limit that is below the specification's, with what follows."""
    for name, follows in _FOLLOWS.items():
        own, specified = getattr(limits, name), getattr(SPECIFIED, name)
        if own < specified:
            yield f"limits.{name} is {own}, below the specification's {specified}: {follows}"


def check_capacity(document: dict[str, Any], limits: Limits) -> None:
    """Check that no window under a policy would fail for the verifier's own limits.

    Args:
        document: a policy that nobody has checked; one that cannot be read is for check 1.

    Raises:
        RejectedError: one might, or it has more slots than accounts that could claim.
    """
    slots, most = document.get("slots"), submissions.most_slots(limits.submitted_bytes)
    # Each account needs its share of what may be submitted, or others could keep its claim out.
    if type(slots) is int and slots > most:
        raise _too_much("submitted_bytes", f"{slots} slots", f"at most {most}", limits)
    with suppress(MalformedError, UnsupportedError):
        policy = Policy.from_json(document)
        for name, what, needed in _needs(policy):
            own = getattr(limits, name)
            if own < min(needed, getattr(SPECIFIED, name)):
                raise _too_much(name, f"{needed} {what}", f"at most {own}", limits)


def most_entries(policy: Policy) -> int:
    """Return how many entries a log under a policy has at most (docs/spec 8.3)."""
    # Opening and close; of each slot its registration and its records.
    planned = 2 + policy.slots * (1 + policy.queries_per_account) + _OTHER_KINDS
    if policy.retrieval.versions:
        planned += len(policy.tenants) * MOST_VERSIONS
    if policy.epochs:
        planned += policy.activations
    if policy.generation is not None:
        # Each query may be a charge, which has an answer or a void.
        planned += policy.slots * policy.queries_per_account
    return planned


def _needs(policy: Policy) -> Iterator[tuple[str, str, int]]:
    """Yield limit, what is counted, and how much a window under a policy may need of it."""
    entries = most_entries(policy)
    records = policy.slots * policy.queries_per_account
    # Charges and answers are listed like registrations; records alone are not.
    listed = entries - (records if policy.generation is None else 0)
    # A log makes a checkpoint only when it has grown.
    yield "checkpoints", "checkpoints", entries
    yield "entries", "entries beside records", listed
    size = MAX_OPENING_BYTES + entries * (LENGTH_BYTES + MAX_FRAME_BYTES)
    yield "records_bytes", "bytes of a handover", size
    yield "json_bytes", "bytes of entries at once", min(listed, _ENTRIES_AT_ONCE) * _JSON_OF_FRAME


def _too_much(name: str, what: str, expected: str, limits: Limits) -> RejectedError:
    own, specified = getattr(limits, name), getattr(SPECIFIED, name)
    why = f", below the specification's {specified}" if own < specified else ""
    return RejectedError(
        f"{what} may be needed; limits.{name} of this verifier is {own}{why}",
        where="policy/slots",
        expected=expected,
    )
