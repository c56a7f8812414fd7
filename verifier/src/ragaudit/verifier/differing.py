"""Two JSON values side by side: where they differ, and how a value is shown to people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.verifier.procedure import CheckResult, Status

_LONGEST: Final = 200


def differing(where: str, signed: object, value: object) -> Iterator[tuple[str, object, object]]:
    """Return (place, signed, recomputed) of what differs, as deep as objects and lists go.

    Args:
        where: place of the two values.
        signed, value: JSON; lists of different lengths differ as a whole.
    """
    if isinstance(signed, Mapping) and isinstance(value, Mapping):
        # A headline is what a reader looks at; the rest in order of name.
        names = signed.keys() | value.keys()
        for key in sorted(names, key=lambda name: (name != "headline", name)):
            yield from differing(f"{where}: {key}", signed.get(key), value.get(key))
    elif isinstance(signed, list) and isinstance(value, list) and len(signed) == len(value):
        for position, (one, other) in enumerate(zip(signed, value, strict=True)):
            yield from differing(f"{where}: {position}", one, other)
    elif type(signed) is not type(value) or signed != value:
        yield where, signed, value


def shown(value: object) -> str:
    """Return a JSON value as a text of bounded length, for people."""
    text = canonical_json.dumps(value).decode()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def queries_of(table: Mapping[str, Any], name: str) -> int | None:
    """Return the number of queries that a member of a signed epsilon table speaks of."""
    match table.get(name):
        case {"queries": int(queries)} if queries >= 0:
            return queries
    return None


def refuted(signed: str, recomputed: CheckResult) -> bool:
    """Return whether part of the work was enough to show that a check fails which is said not to.

    Args:
        signed: status of the verdict.
        recomputed: by the part that was repeated.
    """
    return recomputed.status is Status.FAIL and signed not in {Status.FAIL, Status.NOT_RUN}


def texts_compared(recomputed: Status, signed: str) -> bool:
    """Return whether the verifier concluded from texts what a run without the embedder left open.

    Args:
        recomputed: without the embedder.
        signed: status of the verdict.
    """
    return signed in {Status.PASS, Status.FAIL} and recomputed is Status.NOT_ESTABLISHED
