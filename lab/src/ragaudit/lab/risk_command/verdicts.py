"""Reading the guarantee that a verdict states (docs/spec/10-verdict.md)."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.text import b64_decode

if TYPE_CHECKING:
    from ragaudit.encoding.signing import PublicKey
    from ragaudit.privacy.guarantees import GaussianDp

__all__ = ["Stated", "read_verdict"]

LARGEST_FILE = 64 * 2**20
_JUDGED = ("PASS", "EXCEEDED")


@dataclass(frozen=True, slots=True)
class Stated:
    """What a verdict states.

    Attributes:
        guarantee: mu of the headline, under the policy's relation.
        slack: distance of all noise samples together from the law of the guarantee.
        window, provider, result: of the verdict.
        epsilon, delta: the headline's, as text.
        signed: whether the signature was checked.
    """

    guarantee: "GaussianDp"
    slack: Fraction
    window: str
    provider: str
    result: str
    epsilon: str
    delta: str
    signed: bool


def read_verdict(path: Path, key: "PublicKey | None") -> Stated:
    """Read a verdict: the DSSE envelope, or its payload, or the predicate alone.

    Args:
        key: the verifier's verdict key; None leaves the signature unchecked.

    Raises:
        MalformedError: not a verdict, or without the members that are needed.
        RefusedError: the verdict is not PASS or EXCEEDED, so it states no guarantee.
        RejectedError: not signed by ``key``.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise MalformedError("file too large", where=str(path), expected="at most 64 MiB")
        data = path.read_bytes()
    except OSError as error:
        raise MalformedError("not readable", where=str(path)) from error
    predicate = _unwrapped(data, str(path)) if key is None else _checked(data, key)
    return _stated(predicate, str(path), signed=key is not None)


def _checked(data: bytes, key: "PublicKey") -> dict[str, Any]:
    from ragaudit.ledger.messages.verdict import Verdict  # noqa: PLC0415 - another member

    return Verdict.verify(data.strip(), key).predicate.to_json()


def _unwrapped(data: bytes, where: str) -> dict[str, Any]:
    """The predicate inside of up to three layers: envelope, statement, predicate."""
    try:
        value = json.loads(data)
        if isinstance(value, dict) and "payload" in value:
            value = json.loads(b64_decode(str(value["payload"])))
        if isinstance(value, dict) and "predicate" in value:
            value = value["predicate"]
    except (ValueError, RecursionError, MalformedError) as error:
        raise MalformedError("not a verdict", where=where, expected="verdict.json") from error
    if not isinstance(value, dict):
        raise MalformedError("not a verdict", where=where, expected="verdict.json")
    return value


def _stated(predicate: dict[str, Any], where: str, *, signed: bool) -> Stated:
    from ragaudit.privacy.accounting.table import EpsilonTable  # noqa: PLC0415 - loads slowly

    match predicate:
        case {
            "window": str(window),
            "provider": str(provider),
            "result": str(result),
            "worthless": bool(worthless),
            "epsilon": dict(stated),
        } if stated:
            pass
        case {"claims": {"privacy": {"result": "NOT CLAIMED"}}}:
            raise RefusedError(
                "the verdict claims no epsilon: its window adds no noise", where=where,
                expected="a verdict that claims privacy",
            )  # fmt: skip
        case {"result": str(result)} if result not in _JUDGED:
            raise RefusedError(
                f"a verdict of {result} states no guarantee", where=where, expected="PASS"
            )
        case _:
            raise MalformedError(
                "no window, result or epsilon table", where=where, expected="a verdict of spec 10"
            )
    match predicate:
        case {"claims": {"privacy": {"open": list(left)}}} if left:
            # Whatever the result: what is the provider's word is no guarantee of one channel less.
            raise RefusedError(
                f"its privacy is conditional: {', '.join(map(str, left))} not established",
                where=where, expected="PASS",
            )  # fmt: skip
    # Noise from a seed that somebody chose hides nothing from whoever knows it.
    if result not in _JUDGED or worthless:
        raise RefusedError(
            "the verdict is worthless as evidence" if worthless
            else f"a verdict of {result} states no guarantee",
            where=where, expected="PASS",
        )  # fmt: skip
    try:
        table = EpsilonTable.from_json(stated)
    except MalformedError as error:
        place = f"{where} epsilon {error.where}"
        raise MalformedError(error.what, where=place, expected=error.expected) from error
    headline = table.headline
    if headline.epsilon is None:
        raise MalformedError("no epsilon in the headline", where=where, expected="a verdict")
    return Stated(
        guarantee=headline.ideal,
        slack=table.slack,
        window=window,
        provider=provider,
        result=result,
        epsilon=headline.epsilon,
        delta=table.parameters.delta_policy,
        signed=signed,
    )
