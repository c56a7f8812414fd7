"""Running the procedure again over a bundle, and comparing with the signed verdict.

Anyone can do it with the public part; who holds the confidential part re-checks everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed_results import match
from ragaudit.ledger.messages.verdict import REFUSED, MalformedVerdict, Verdict
from ragaudit.verifier import comparison
from ragaudit.verifier.bundle import Bundle, Part, open_bundle
from ragaudit.verifier.comparison import Comparison, Found
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.models import (
    CommittedEmbedder,
    GeneratorService,
    OwnGenerator,
    committed_generator,
)
from ragaudit.verifier.procedure.checks import run, run_opening_checks
from ragaudit.verifier.procedure.facts import Pins, Progress
from ragaudit.verifier.procedure.framework import Outcome


class RecheckDiffers(RejectedError):
    """Running the procedure again does not give what was signed."""


@dataclass(frozen=True, slots=True)
class Recheck(Found):
    """What a second run gave, beside what the comparison found.

    Attributes:
        verdict: the signed one; its signature is valid.
        outcome: the recomputed one.
        part: the part of the evidence that was at hand.
        proofs: sampled records whose responses were checked again, and all that were answered.
    """

    verdict: Verdict
    outcome: Outcome
    part: Part
    proofs: tuple[int, int]

    @property
    def complete(self) -> bool:
        """Whether everything was repeated that a re-check can repeat."""
        return not self.not_repeated

    def raise_for_differences(self) -> None:
        """Check that the verdict stands, as far as it was repeated.

        Raises:
            RecheckDiffers: it does not; names the difference that matters most.
        """
        if self.differences:
            more = len(self.differences) - 1
            raise RecheckDiffers(self.differences[0] + (f" (and {more} more)" if more else ""))

    def lines(self) -> list[str]:
        """Return a summary for people: conclusion, what contradicts it, what was done, what not."""
        lines = [f"DIFFERS: {difference}" for difference in self.differences]
        lines.append(
            f"verdict {self.verdict.result} of window {self.verdict.predicate.window}, "
            f"re-checked from the {self.part} part with the {self.outcome.engine} engine"
        )
        claims = self.verdict.predicate.claims
        integrity, privacy = claims.statements
        lines += [
            f"integrity {claims.integrity}: {integrity}",
            f"privacy {claims.privacy}: {privacy}",
        ]
        lines += [
            f"{check.number:2d} {check.id}: {check.status}"
            + (
                f": {check.reason}"
                if check.status not in {"PASS", "NOT RUN", "NOT APPLICABLE"}
                else ""
            )
            for check in self.outcome.checks
        ]
        lines += [f"not repeated: {text}" for text in self.not_repeated]
        lines += [f"note: {note}" for note in self.notes]
        return [self._conclusion(), *lines]

    def _conclusion(self) -> str:
        repeated = "{} of {} checks and {} of {} proofs repeated".format(*self.checks, *self.proofs)
        if self.differences:
            return f"THE VERDICT DOES NOT STAND: {self.differences[0]} ({repeated})"
        if self.complete:
            claims = self.verdict.predicate.claims
            said = f"integrity {claims.integrity}, privacy {claims.privacy}"
            return f"the verdict stands: {self.verdict.result}, {said} ({repeated})"
        return f"nothing differs, but not everything was repeated: {repeated}"


def recheck(
    bundle_path: Path,
    *,
    engine: Engine,
    records: int | None = None,
    verdict_key: PublicKey | None = None,
    pins: Pins | None = None,
    embedder: CommittedEmbedder | None = None,
    generators: GeneratorService | None = None,
    test_results: Sequence[bytes] = (),
    progress: Progress | None = None,
) -> Recheck:
    """Run the procedure over a bundle and compare with its verdict.

    Args:
        bundle_path: the file, of either part.
        engine: checks proofs and draws the noise again.
        records: look at the responses of the first so many sampled records only; None for all.
        verdict_key: the verifier's verdict key from a source that is trusted; without it the
            key that the policy names is used, and a note says so.
        pins: other keys known from elsewhere.
        embedder: the committed embedder, to compare texts and vectors again.
        generators: language models of one's own, to ask for votes again.
        test_results: files that the verdict refers to, each a signed result (10.11).
        progress: called with (check id, done, total); what it raises ends the run.

    Raises:
        MalformedBundle, MalformedVerdict: not a bundle, or its verdict is none.
        VerdictRejected: the verdict is not signed with that key.
        OtherResult: a test result is given that the verdict does not refer to.
    """
    with open_bundle(bundle_path) as bundle:
        policy = _policy(bundle)
        key = verdict_key or _policy_key(policy)
        verdict = Verdict.verify(bundle.verdict, key)
        given = match(verdict.predicate.test_results, test_results)
        with committed_generator(bundle.evidence, generators) as generator:
            outcome, proofs = _run(
                *(bundle, verdict, engine, records, pins, embedder, generator, progress)
            )
        compared = Comparison(
            verdict=verdict,
            outcome=outcome,
            part=bundle.part,
            proofs=proofs,
            policy=policy,
            clock=_clock(bundle),
            embedder=embedder is not None,
            generator=generator is not None,
        ).run(bundle.digests)
        policy_item = bundle.evidence.get(items.POLICY, b"")
        differences, said = comparison.compare_results(
            verdict.predicate.test_results, outcome.test_results, given, policy_item
        )
    notes = (*compared.notes, *said)
    # A forged bundle carries its forger's key: the reader must compare it.
    if verdict_key is None:
        text = "the verdict key was taken from the policy in the bundle; compare it: "
        notes = (text + verdict.key.raw.hex(), *notes)
    return Recheck(
        verdict=verdict,
        outcome=outcome,
        part=bundle.part,
        proofs=proofs,
        checks=compared.checks,
        differences=(*compared.differences, *differences),
        not_repeated=compared.not_repeated,
        notes=notes,
    )


def _policy(bundle: Bundle) -> Policy | None:
    try:
        return Policy.parse(bundle.evidence.get(items.POLICY, b""))
    except RagauditError:
        # Check 1 says what is wrong with it; the rest is compared all the same.
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
    """Return why a re-check could not repeat everything, as far as the bundle alone shows it.

    Args:
        bundle_path: the file.
        records: as for :func:`recheck`.

    Raises:
        MalformedBundle: not a bundle.
    """
    with open_bundle(bundle_path) as bundle:
        texts = []
        # A window that was never countersigned has public items only.
        if bundle.part == "public" and items.COUNTERSIGNATURE in bundle.digests:
            texts.append("the bundle has the public part only")
        sampled = len(_sampled(bundle) or ())
        # Said before the work, which takes hours for a large sample.
        if records is not None and records < sampled:
            texts.append(f"only {records} of {sampled} sampled records would be looked at")
        return tuple(texts)


def _run(
    bundle: Bundle,
    verdict: Verdict,
    engine: Engine,
    records: int | None,
    pins: Pins | None,
    embedder: CommittedEmbedder | None,
    generator: OwnGenerator | None,
    progress: Progress | None,
) -> tuple[Outcome, tuple[int, int]]:
    if verdict.result == REFUSED:
        # Nobody countersigned: the clock that the policy was late for is the verdict's own time.
        now = verdict.predicate.time
        outcome = run_opening_checks(
            bundle.evidence, engine=engine, now=now, pins=pins, progress=progress
        )
        return outcome, (0, 0)
    sampled = _sampled(bundle)
    only = None if records is None else frozenset((sampled or ())[: max(0, records)])
    outcome = run(
        bundle.evidence,
        engine=engine,
        pins=pins,
        embedder=embedder,
        generator=generator,
        part=bundle.part,
        only=only,
        progress=progress,
    )
    # The public part has no challenge; how many answered, the signed subjects say.
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
