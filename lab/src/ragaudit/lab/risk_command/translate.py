"""`ragaudit risk translate`."""

import json
import textwrap
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import b64_decode
from ragaudit.lab.risk_command.options import (
    AsJson,
    EpsilonOption,
    EtaOption,
    Line,
    MuOption,
    PriorOption,
    RecordsOption,
    SpanOption,
    check_companions,
    claimed,
    scenario_of,
)
from ragaudit.lab.risk_command.show import as_json

if TYPE_CHECKING:
    from ragaudit.lab.risk.general_bounds import Scenario
    from ragaudit.privacy.guarantees import GaussianDp


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


def read_verdict(path: Path, key: PublicKey | None) -> Stated:
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


def _checked(data: bytes, key: PublicKey) -> dict[str, Any]:
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


EXAMPLE = """Examples:

  ragaudit risk translate --verdict verdict.json --verdict-key HEX --records 10

  ragaudit risk translate --mu 0.2 --relation null-replace --prior 0.5,0.3,0.2

  ragaudit risk translate --epsilon 1 --delta 1e-6 --relation add-remove --records 100"""

MOST_LISTED = 10_000
"""Probabilities that JSON lists one by one."""

CAVEATS = (
    "The limits hold for every attacker, whatever the method, who sees what the guarantee covers "
    "and no more.",
    "They limit what the target's presence adds. What the rest of the collection, or common "
    "knowledge, tells about the target is not counted as a leak.",
)


def command(
    verdict: Annotated[
        Path | None, typer.Option(help="The verifier's verdict.json; only PASS and EXCEEDED.")
    ] = None,
    verdict_key: Annotated[
        PublicKey | None,
        typer.Option(parser=public_key, metavar="HEX", help="The verifier's verdict key."),
    ] = None,
    epsilon: EpsilonOption = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="0 to 1, with --epsilon; 0 unless given.")
    ] = None,
    mu: MuOption = None,
    relation: Annotated[
        NeighboringRelation | None,
        typer.Option("--relation", help="Relation of --epsilon or --mu."),
    ] = None,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = None,
    span: SpanOption = None,
    as_json_text: AsJson = False,
) -> None:
    """A guarantee in sentences to quote: membership, ROC area, attributes, reconstruction.

    The prior is the auditor's to state: what an attacker believes about a target before seeing any
    answer. All numbers are upper limits, rounded up.
    """
    from ragaudit.lab.risk.translation import translate  # noqa: PLC0415 - loads scipy

    check_companions(
        {
            "--verdict": verdict, "--verdict-key": verdict_key, "--eta": eta, "--span": span,
        }
    )  # fmt: skip
    line = Line.of(eta, span)
    scenario = scenario_of(records, prior, line)
    stated: Stated | None = None
    if verdict is not None:
        if any(each is not None for each in (epsilon, delta, mu, relation)):
            raise MalformedError(
                "a verdict has its own guarantee", where="--verdict", expected="alone"
            )
        stated = read_verdict(verdict, verdict_key)
        found = translate(stated.guarantee, scenario, float(stated.slack), line.nearness())
    else:
        if relation is None:
            raise MalformedError(
                "a guarantee without its relation says nothing", where="--relation",
                expected="replace, add-remove or null-replace",
            )  # fmt: skip
        given = claimed(epsilon, delta, mu, relation)
        found = translate(given, scenario, nearness=line.nearness())
    source = _source(stated) if stated is not None else f"{found.guarantee}, {found.relation}"
    if as_json_text:
        report: dict[str, Any] = {
            **asdict(found),
            "prior_stated": _prior(scenario, prior),
            "eta": line.eta,
            "span": line.span if line.eta else None,
            "source": source,
            "sentences": found.sentences(),
            "caveats": CAVEATS,
        }
        if stated is not None:
            report["verdict"] = {
                "window": stated.window,
                "provider": stated.provider,
                "result": stated.result,
                "epsilon": stated.epsilon,
                "delta": stated.delta,
                "signature_checked": stated.signed,
            }
        as_json(report)
        return
    for paragraph in (source, *found.sentences(), *CAVEATS):
        typer.echo(textwrap.fill(paragraph, 100) + "\n")


def _prior(scenario: "Scenario", source: str | None) -> dict[str, Any]:
    """The prior itself, or, if it is too long, where it came from."""
    if scenario.prior is None or source is None:
        return {"uniform_over": scenario.records}
    if scenario.prior.records <= MOST_LISTED:
        return {"probabilities": scenario.prior.probabilities.tolist()}
    return {
        "records": scenario.prior.records,
        "largest": float(scenario.prior.probabilities.max()),
        "collision_probability": scenario.prior.collision_probability,
        "source": source,
    }


def _source(stated: "Stated") -> str:
    checked = "signature checked" if stated.signed else "SIGNATURE NOT CHECKED (--verdict-key)"
    return (
        f"Window {stated.window} of {stated.provider}: {stated.result}, epsilon {stated.epsilon} "
        f"at delta {stated.delta} under {stated.guarantee.relation}; {checked}."
    )
