"""Running the procedure again over a bundle, and comparing with the signed verdict.

Anyone can do it with the public part; who holds the confidential part re-checks everything.
"""

from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.clock import Clock
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier import evidence as items
from ragaudit.verifier.bundle import Bundle, Part, open_bundle
from ragaudit.verifier.comparison import Comparison, Found
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.procedure.context import CommittedEmbedder, Pins, Progress
from ragaudit.verifier.procedure.outcome import REFUSED, Outcome
from ragaudit.verifier.procedure.run import run, run_opening_checks
from ragaudit.verifier.verdict import MalformedVerdict, Verdict, verify_verdict


class RecheckDiffers(RejectedError):
    """Running the procedure again does not give what was signed."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a second run gave.

    Attributes:
        verdict: the signed one; its signature is valid.
        outcome: the recomputed one.
        part: the part of the evidence that was at hand.
        proofs: sampled records whose responses were checked again, and all that were answered.
        checks: checks that were repeated whole, and all that the verdict lists.
        differences: what contradicts the verdict, the one that matters most first; empty for a
            verdict that stands, as far as it was repeated.
        not_repeated: what was signed and not computed again, and why.
        notes: what is worth knowing and contradicts nothing.
    """

    verdict: Verdict
    outcome: Outcome
    part: Part
    proofs: tuple[int, int]
    checks: tuple[int, int]
    differences: tuple[str, ...]
    not_repeated: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether everything was repeated that a re-check can repeat."""
        return not self.not_repeated

    def raise_for_differences(self) -> None:
        """RecheckDiffers if the verdict does not stand."""
        if self.differences:
            more = len(self.differences) - 1
            raise RecheckDiffers(self.differences[0] + (f" (and {more} more)" if more else ""))

    def lines(self) -> list[str]:
        """A summary for people: the conclusion, what contradicts it, what was done, what not."""
        found = [f"DIFFERS: {difference}" for difference in self.differences]
        found.append(
            f"verdict {self.verdict.result} of window {self.verdict.predicate['window']}, "
            f"re-checked from the {self.part} part with the {self.outcome.engine} engine"
        )
        found += [
            f"{each.number:2d} {each.id}: {each.status}"
            + (f": {each.reason}" if each.status not in {"PASS", "NOT RUN"} else "")
            for each in self.outcome.checks
        ]
        found += [f"not repeated: {each}" for each in self.not_repeated]
        found += [f"note: {note}" for note in self.notes]
        return [self._conclusion(), *found]

    def _conclusion(self) -> str:
        repeated = "{} of {} checks and {} of {} proofs repeated".format(*self.checks, *self.proofs)
        if self.differences:
            return f"THE VERDICT DOES NOT STAND: {self.differences[0]} ({repeated})"
        if self.complete:
            return f"the verdict stands: {self.verdict.result} ({repeated})"
        return f"nothing differs, but not everything was repeated: {repeated}"


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
        policy = _policy(bundle)
        key = verdict_key or _policy_key(policy)
        verdict = verify_verdict(bundle.verdict, key)
        outcome, proofs = _run(bundle, verdict, engine, records, pins, embedder, progress)
        compared = Comparison(
            verdict=verdict,
            outcome=outcome,
            part=bundle.part,
            proofs=proofs,
            policy=policy,
            clock=_clock(bundle),
            embedder=embedder is not None,
        ).run(bundle.digests)
        return _recheck(
            bundle.part, verdict, outcome, proofs, compared, believed=verdict_key is None
        )


def _recheck(
    part: Part,
    verdict: Verdict,
    outcome: Outcome,
    proofs: tuple[int, int],
    compared: Found,
    *,
    believed: bool,
) -> Recheck:
    notes = list(compared.notes)
    if believed:
        key = verdict.key.raw.hex()
        notes.insert(
            0, f"the verdict key was taken from the policy in the bundle; compare it: {key}"
        )
    return Recheck(
        verdict=verdict,
        outcome=outcome,
        part=part,
        proofs=proofs,
        checks=compared.checks,
        differences=compared.differences,
        not_repeated=compared.not_repeated,
        notes=tuple(notes),
    )


def _policy(bundle: Bundle) -> Policy | None:
    try:
        return Policy.parse(bundle.evidence.get(items.POLICY, b""))
    except RagauditError:
        return None


def _policy_key(policy: Policy | None) -> PublicKey:
    if policy is None:
        raise MalformedVerdict(
            "the policy names no verdict key", expected="the verifier's key from elsewhere"
        )
    return policy.keys.verdict


def _clock(bundle: Bundle) -> Clock | None:
    try:
        return Clock.parse(bundle.evidence.get(items.CLOCK, b""))
    except MalformedError:
        return None


def obstacles(bundle_path: Path, *, records: int | None = None) -> tuple[str, ...]:
    """Why a re-check could not repeat everything, as far as the bundle shows before it is run.

    Raises:
        MalformedBundle: not a bundle.
    """
    with open_bundle(bundle_path) as bundle:
        found = []
        # A window that was never countersigned has public items only.
        if bundle.part == "public" and items.COUNTERSIGNATURE in bundle.digests:
            found.append("the bundle has the public part only")
        sampled = len(_sampled(bundle) or ())
        if records is not None and records < sampled:
            found.append(f"only {records} of {sampled} sampled records would be looked at")
        return tuple(found)


def _run(
    bundle: Bundle,
    verdict: Verdict,
    engine: Engine,
    records: int | None,
    pins: Pins | None,
    embedder: CommittedEmbedder | None,
    progress: Progress | None,
) -> tuple[Outcome, tuple[int, int]]:
    if verdict.result == REFUSED:
        now = int(verdict.predicate["time"])
        refused = run_opening_checks(
            bundle.evidence, engine=engine, now=now, pins=pins, progress=progress
        )
        return refused, (0, 0)
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
        return outcome, (0, sum(name.startswith(items.RESPONSES) for name in verdict.subjects))
    return outcome, (len(sampled) if only is None else len(only), len(sampled))


def _sampled(bundle: Bundle) -> tuple[int, ...] | None:
    """Leaf indices of the challenged records, rising; None where no challenge can be read."""
    try:
        challenge = Challenge.parse(bundle.evidence.get(items.CHALLENGE, b""))
    except MalformedError:
        return None
    return tuple(sorted(challenge.sampled))
