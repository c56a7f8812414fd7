"""Running the procedure again over a bundle, and comparing with the signed verdict.

Anyone can do it with the public part; who holds the confidential part re-checks everything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.policy import Policy
from ragaudit.verifier import evidence as items
from ragaudit.verifier.bundle import Bundle, Part, open_bundle
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.procedure.checks import CHECKS, OPENING_CHECKS
from ragaudit.verifier.procedure.context import CommittedEmbedder, Pins, Progress
from ragaudit.verifier.procedure.framework import CONFIDENTIAL_PART, CheckResult, Status
from ragaudit.verifier.procedure.messages import Challenge
from ragaudit.verifier.procedure.outcome import REFUSED, Outcome
from ragaudit.verifier.procedure.run import run, run_opening_checks
from ragaudit.verifier.verdict import MalformedVerdict, Verdict, verify_verdict

# What the table says of the distribution of records needs the records.
_NEEDS_RECORDS: Final = frozenset({"all_records", "realised"})
_BY_RECORD: Final = frozenset({"seed", "embedding", "selection"})


class RecheckDiffers(RejectedError):
    """Running the procedure again does not give what was signed."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a second run gave.

    Attributes:
        verdict: the signed one; its signature is valid.
        outcome: the recomputed one.
        part: the part of the evidence that was at hand.
        records: sampled records whose responses were checked again, and all sampled ones; None
            where there is no sample at hand.
        differences: what contradicts the verdict; empty for a verdict that stands.
        notes: what was not checked again, and why.
    """

    verdict: Verdict
    outcome: Outcome
    part: Part
    records: tuple[int, int] | None
    differences: tuple[str, ...]
    notes: tuple[str, ...]

    def raise_for_differences(self) -> None:
        """RecheckDiffers if the verdict does not stand."""
        if self.differences:
            more = len(self.differences) - 1
            raise RecheckDiffers(self.differences[0] + (f" (and {more} more)" if more else ""))

    def lines(self) -> list[str]:
        """A summary for people."""
        found = [
            f"window {self.verdict.predicate['window']}: signed verdict {self.verdict.result}",
            f"re-checked from the {self.part} part with the {self.outcome.engine} engine",
        ]
        if self.records is not None:
            found.append("proofs of {} of {} sampled records checked".format(*self.records))
        found += [f"{each.number:2d} {each.id}: {each.status}" for each in self.outcome.checks]
        found += [f"note: {note}" for note in self.notes]
        found += [f"DIFFERS: {difference}" for difference in self.differences]
        found.append("the verdict does not stand" if self.differences else "the verdict stands")
        return found


def recheck(
    bundle_path: Path,
    *,
    engine: Engine,
    records: int | None = None,
    verdict_key: PublicKey | None = None,
    pins: Pins | None = None,
    embedder: CommittedEmbedder | None = None,
    progress: Progress | None = None,
) -> Recheck:
    """Run the procedure over a bundle and compare with its verdict.

    Args:
        records: look at the responses of the first so many sampled records only; None for all.
        verdict_key: the verifier's verdict key from a source that is trusted; without it the
            key that the policy names is used, and a note says so.
        pins: other keys known from elsewhere.
        embedder: the committed embedder, to compare texts and vectors again.

    Raises:
        MalformedBundle, MalformedVerdict: not a bundle, or its verdict is none.
        VerdictRejected: the verdict is not signed with that key.
    """
    with open_bundle(bundle_path) as bundle:
        notes: list[str] = []
        key = verdict_key or _policy_key(bundle, notes)
        verdict = verify_verdict(bundle.verdict, key)
        differences = _compare_subjects(bundle, verdict)
        outcome, counted = _run(bundle, verdict, engine, records, pins, embedder, progress)
        if counted is not None and counted[0] < counted[1]:
            notes.append("responses of {} of {} sampled records were looked at".format(*counted))
        differences += _compare(verdict, outcome, bundle.part, counted, notes)
        return Recheck(
            verdict, outcome, bundle.part, counted, tuple(differences), tuple(dict.fromkeys(notes))
        )


def _policy_key(bundle: Bundle, notes: list[str]) -> PublicKey:
    try:
        key = Policy.parse(bundle.evidence.get(items.POLICY, b"")).keys.verdict
    except RagauditError as error:
        raise MalformedVerdict(
            "the policy names no verdict key", expected="the verifier's key from elsewhere"
        ) from error
    notes.append(
        "the verdict key was taken from the policy in the bundle; compare it: " + key.raw.hex()
    )
    return key


def _compare_subjects(bundle: Bundle, verdict: Verdict) -> list[str]:
    """The items at hand are those that the verdict was signed over."""
    signed = {
        name: digest
        for name, digest in verdict.subjects.items()
        if bundle.part == "all" or name.startswith(items.PUBLIC)
    }
    return [
        f"{name} is not the item that the verdict was signed over"
        for name in sorted(signed.keys() | bundle.digests.keys())
        if signed.get(name) != bundle.digests.get(name)
    ]


def _run(
    bundle: Bundle,
    verdict: Verdict,
    engine: Engine,
    records: int | None,
    pins: Pins | None,
    embedder: CommittedEmbedder | None,
    progress: Progress | None,
) -> tuple[Outcome, tuple[int, int] | None]:
    if verdict.result == REFUSED:
        now = int(verdict.predicate["time"])
        refused = run_opening_checks(
            bundle.evidence, engine=engine, now=now, pins=pins, progress=progress
        )
        return refused, None
    sampled = _sampled(bundle)
    only = None if records is None else frozenset((sampled or ())[: max(0, records)])
    outcome = run(
        bundle.evidence,
        engine=engine,
        pins=pins,
        embedder=embedder,
        part=bundle.part,
        only=only,
        progress=progress,
    )
    if sampled is None:
        return outcome, None
    return outcome, (len(sampled) if only is None else len(only), len(sampled))


def _sampled(bundle: Bundle) -> tuple[int, ...] | None:
    """Leaf indices of the challenged records, rising; None where no challenge can be read."""
    try:
        challenge = Challenge.parse(bundle.evidence.get(items.CHALLENGE, b""))
    except MalformedError:
        return None
    return tuple(sorted({index for stratum in challenge.strata for index in stratum.sample}))


def _compare(
    verdict: Verdict,
    outcome: Outcome,
    part: Part,
    counted: tuple[int, int] | None,
    notes: list[str],
) -> list[str]:
    signed = verdict.predicate
    partial = counted is not None and counted[0] < counted[1]
    found = _compare_checks(verdict, outcome, partial, notes)
    if outcome.result is not None and outcome.result != verdict.result:
        found.append(f"result: signed {verdict.result}, recomputed {outcome.result}")
    if verdict.result == REFUSED and outcome.result is None:
        found.append("result: signed REFUSED, but nothing is to be refused")
    for name, value in (
        ("window", outcome.window),
        ("provider", outcome.provider),
        ("worthless", outcome.worthless),
    ):
        if signed[name] != value:
            found.append(f"{name}: signed {signed[name]}, recomputed {value}")
    if verdict.result == REFUSED:
        return found
    objects: dict[str, Mapping[str, Any]] = {
        "epsilon": outcome.epsilon,
        "sampling": outcome.sampling,
        "coalition": outcome.coalition,
        "counts": outcome.counts,
    }
    for name, recomputed in objects.items():
        found += _compare_objects(name, signed[name], recomputed, part)
    return found


def _compare_checks(
    verdict: Verdict, outcome: Outcome, partial: bool, notes: list[str]
) -> list[str]:
    expected = OPENING_CHECKS if verdict.result == REFUSED else CHECKS
    signed = {check_id: status for _, check_id, status in verdict.checks}
    order = [(number, check_id) for number, check_id, _ in verdict.checks]
    found = []
    if order != [(check.number, check.id) for check in expected]:
        found.append("the verdict does not list the checks of the procedure")
    for each in outcome.checks:
        status = signed.get(each.id, "nothing")
        if status == each.status:
            continue
        reason = _excuse(each, status, partial)
        if reason:
            notes.append(f"{each.id}: {reason}")
        else:
            found.append(
                f"check {each.number} {each.id}: signed {status}, recomputed {each.status}: "
                f"{each.reason}"
            )
    return found


def _excuse(each: CheckResult, signed: str, partial: bool) -> str:
    """Why a status may differ from the signed one, if it may."""
    if each.status is Status.NOT_RUN and CONFIDENTIAL_PART in each.needs:
        return f"signed {signed}; not checked again without the confidential part"
    if each.id == "embedding" and (signed, each.status) == ("PASS", Status.NOT_ESTABLISHED):
        return "texts and vectors were not compared again, as the embedder is not at hand"
    if partial and each.id in _BY_RECORD and each.status is Status.PASS:
        return f"signed {signed}; not all records were checked again"
    return ""


def _compare_objects(
    name: str, signed: Mapping[str, Any], value: Mapping[str, Any], part: Part
) -> list[str]:
    """Members that differ; from the public part, those that are known there."""
    recomputed = canonical_json.loads(canonical_json.dumps(dict(value)))
    if part == "public" and name == "sampling":
        return []
    found = []
    for key in sorted(signed.keys() | recomputed.keys()):
        unknown = recomputed.get(key) is None or (name == "epsilon" and key in _NEEDS_RECORDS)
        if part == "public" and unknown:
            continue
        if signed.get(key) != recomputed.get(key):
            found.append(
                f"{name}: {key} is signed as {_shown(signed.get(key))}, "
                f"recomputed as {_shown(recomputed.get(key))}"
            )
    return found


def _shown(value: object) -> str:
    text = canonical_json.dumps(value).decode()
    return text if len(text) <= 200 else text[:199] + "…"
