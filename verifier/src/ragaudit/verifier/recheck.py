"""Running the procedure again over a bundle, and comparing with the signed verdict (spec 10.5).

Anyone can do it with the public part; who holds the confidential part re-checks everything.

What can be computed again is compared, also from parts: the result from the signed statuses, the
table from the signed counts, and the test results that it refers to (10.11). What cannot is listed,
so that silence never reads as agreement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed_results import match, references_of
from ragaudit.ledger.messages.verdict import (
    CONDITIONAL,
    CONDITIONS,
    MalformedVerdict,
    Predicate,
    SignedCheck,
    Verdict,
)
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.bundle import Bundle, Part, open_bundle
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.models import (
    CommittedEmbedder,
    GeneratorService,
    OwnGenerator,
    committed_generator,
)
from ragaudit.verifier.procedure import (
    PASS,
    REFUSED,
    CheckResult,
    Outcome,
    Status,
    covered,
    members,
)
from ragaudit.verifier.procedure.checks import run, run_opening_checks
from ragaudit.verifier.procedure.facts import CONFIDENTIAL_PART, STAMP_LIBRARY, Pins, Progress
from ragaudit.verifier.procedure.privacy_checks import table

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


BY_RECORD: Final = frozenset({"seed", "embedding", "selection"})
"""Checks that look at sampled records one by one."""


class _Rank(IntEnum):
    """Which difference matters most: one of a lower rank explains those of higher ones."""

    EVIDENCE = 0
    RESULT = 1
    CHECK = 2
    IDENTITY = 3
    EPSILON = 4
    NUMBERS = 5
    TEXTS = 6
    RESULTS = 7


class RecheckDiffers(RejectedError):
    """Running the procedure again does not give what was signed."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a second run gave, and how it compares.

    Attributes:
        verdict: the signed one; its signature is valid.
        outcome: the recomputed one.
        part: the part of the evidence that was at hand.
        proofs: sampled records whose responses were checked again, and all that were answered.
        differences: what contradicts the verdict, what matters most first; empty if it stands.
        not_repeated: what was signed and could not be computed again here, and why.
        notes: what is worth knowing and contradicts nothing.
        checks: checks that were repeated whole, and all checks that the verdict lists.
    """

    verdict: Verdict
    outcome: Outcome
    part: Part
    proofs: tuple[int, int]
    differences: tuple[str, ...]
    not_repeated: tuple[str, ...]
    notes: tuple[str, ...]
    checks: tuple[int, int]

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


@dataclass(slots=True)
class Comparison:
    """One comparison.

    Attributes:
        proofs: sampled records whose responses were looked at again, and all that were answered.
        policy: of the bundle, None where it cannot be read.
        clock: of the bundle, None where it cannot be read.
        embedder, generator: whether the committed ones were at hand.
        policy_item: bytes of the policy.
        results: test results that are at hand, by the names of the references.
    """

    verdict: Verdict
    outcome: Outcome
    part: Part
    proofs: tuple[int, int]
    policy: Policy | None
    clock: Clock | None
    embedder: bool
    generator: bool
    policy_item: bytes = b""
    results: Mapping[str, bytes] = field(default_factory=dict)
    _differences: list[tuple[_Rank, str]] = field(default_factory=list)
    _not_repeated: list[str] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)

    def run(self, digests: Mapping[str, str]) -> Recheck:
        """Compare everything; ``digests`` are those of the items at hand, hexadecimal."""
        self._compare_items(digests)
        repeated = self._compare_checks()
        self._compare_result()
        self._compare_identity()
        self._compare_epsilon()
        self._compare_sampling()
        self._compare_coalition()
        self._compare_counts()
        self._compare_told("attested")
        self._compare_told("withheld", "how many rows each record counts", told=False)
        self._compare_told("documents", "what the log lists", told=not self._log_failed)
        self._compare_value(_Rank.EPSILON, "overlaps", self._signed.overlaps, self.outcome.overlaps)
        costs = self.outcome.generation and self.outcome.generation.to_json()
        self._compare_value(_Rank.EPSILON, "generation", self._signed.generation, costs)
        self._compare_texts()
        self._compare_time()
        self._compare_results()
        ranked = sorted(self._differences, key=lambda difference: difference[0])
        return Recheck(
            self.verdict,
            self.outcome,
            self.part,
            self.proofs,
            tuple(text for _, text in ranked),
            tuple(dict.fromkeys(self._not_repeated)),
            tuple(dict.fromkeys(self._notes)),
            (repeated, len(self._signed.checks)),
        )

    @property
    def _signed(self) -> Predicate:
        return self.verdict.predicate

    @property
    def _public(self) -> bool:
        """Whether confidential items are missing; a refusal has none."""
        return self.part == "public" and self.verdict.result != REFUSED

    @property
    def _noised(self) -> bool:
        """Whether the window has noise; one without a policy that can be read may have."""
        return self.policy is None or self.policy.noised

    def _status(self, check_id: str) -> str:
        """The signed status of a check; empty where the verdict does not list it."""
        return next(
            (str(check.status) for check in self._signed.checks if check.id == check_id), ""
        )

    def _differ(self, rank: _Rank, text: str) -> None:
        self._differences.append((rank, text))

    def _compare_items(self, digests: Mapping[str, str]) -> None:
        """The items at hand are those that the verdict was signed over."""
        signed = {
            name: digest
            for name, digest in self.verdict.subjects.items()
            if self.part == "all" or name.startswith("public/")
        }
        for name in sorted(signed.keys() | digests.keys()):
            if signed.get(name) != digests.get(name):
                text = f"{name} is not the item that the verdict was signed over"
                self._differ(_Rank.EVIDENCE, text)

    def _compare_checks(self) -> int:
        """How many checks were repeated whole."""
        order = [(check.number, check.id) for check in self._signed.checks]
        # Else a verdict could leave the check out that failed. Which there are, the policy says.
        if order != [(check.number, check.id) for check in self.outcome.checks]:
            self._differ(_Rank.CHECK, "the verdict does not list the checks of the procedure")
        signed = {check.id: check for check in self._signed.checks}
        repeated = 0
        for result in self.outcome.checks:
            if result.id not in signed:
                continue
            name, status = f"check {result.number} {result.id}", str(signed[result.id].status)
            excuse = self._excuse(result, status)
            if excuse:
                self._not_repeated.append(f"{name}: {excuse}")
            else:
                repeated += 1
            # An excuse covers what was not looked at, never a fault that was found.
            refuted = result.status is Status.FAIL and status != Status.NOT_RUN
            if status != result.status and (not excuse or refuted):
                text = f"{name}: signed {status}, recomputed {result.status}: {result.reason}"
                self._differ(_Rank.CHECK, text)
            elif not excuse:
                self._note_texts(name, signed[result.id], result)
        return repeated

    def _note_texts(self, check: str, signed: SignedCheck, result: CheckResult) -> None:
        """A report shows what was signed: a note says where that reads otherwise here."""
        for name, stated, text in (
            ("reason", signed.reason, result.reason),
            ("evidence", list(signed.evidence), list(result.evidence)),
        ):
            if stated != text:
                both = f"signed {shown(stated)}, recomputed {shown(text)}"
                self._notes.append(f"the {name} of {check} reads otherwise: {both}")

    def _excuse(self, result: CheckResult, signed: str) -> str:
        """Why a check was not repeated whole; empty where it was."""
        if result.status is Status.NOT_RUN and CONFIDENTIAL_PART in result.needs:
            return "needs the confidential part"
        if result.status is Status.NOT_RUN and STAMP_LIBRARY in result.needs:
            return result.reason
        if self._public and result.id == "log":
            return "the records themselves are confidential; leaves, root and entries were checked"
        if self._public and self._log_failed and signed == Status.NOT_RUN:
            return "the verifier found the log at fault, perhaps in its confidential part"
        if result.id in BY_RECORD and self.proofs[0] < self.proofs[1]:
            return "{} of {} sampled records".format(*self.proofs)
        # The verifier may have concluded from texts what a run without the model leaves open.
        compared = signed in {Status.PASS, Status.FAIL} and (
            result.status is Status.NOT_ESTABLISHED
        )
        if result.id in ("embedding", "rows") and not self.embedder and compared:
            return "the committed embedder is not at hand to compare texts and vectors"
        if result.id in CONDITIONS and not self._all_at_hand and compared:
            return "the committed language model, or embedder, is not at hand to ask it again"
        return ""

    @property
    def _all_at_hand(self) -> bool:
        return self.generator and self.embedder

    @property
    def _log_failed(self) -> bool:
        return self._status("log") != PASS

    def _compare_result(self) -> None:
        result, statuses = self.verdict.result, [check.status for check in self._signed.checks]
        applied = {PASS, Status.NOT_APPLICABLE}
        # Any other result follows from the signed checks, or the verdict could not be read (10.6).
        if result == REFUSED and all(one in applied for one in statuses):
            self._differ(_Rank.RESULT, "result: signed REFUSED, the signed checks give no refusal")
        recomputed = self.outcome.result
        # What the verifier asked its own model, nobody asked here: the check itself says so.
        unasked = (result, recomputed) == (PASS, CONDITIONAL) and not self._all_at_hand
        if recomputed is not None and recomputed != result and not unasked:
            self._differ(_Rank.RESULT, f"result: signed {result}, recomputed {recomputed}")
        if result == REFUSED and recomputed is None:
            self._differ(_Rank.RESULT, "result: signed REFUSED, but nothing is to be refused")

    def _compare_identity(self) -> None:
        for name, value in (
            ("window", self.outcome.window),
            ("provider", self.outcome.provider),
            ("worthless", self.outcome.worthless),
            ("terms", self.outcome.terms),
            ("scope", dict(self.outcome.scope)),
        ):
            self._compare_value(_Rank.IDENTITY, name, getattr(self._signed, name), value)

    def _compare_epsilon(self) -> None:
        signed, recomputed = self._signed.epsilon, self.outcome.epsilon
        if self._public and not signed and self._log_failed and self._noised:
            self._not_repeated.append("epsilon: the verifier could not read the log")
            return
        if self._public and recomputed is not None:
            self._not_repeated.append(
                "epsilon: how records are spread over tenants and accounts (all_records, realised)"
            )
            recomputed = self._with_signed_counts(recomputed, signed)
        value = {} if recomputed is None else recomputed.to_json()
        self._compare_value(_Rank.EPSILON, "epsilon", signed, value)

    def _with_signed_counts(self, own: EpsilonTable, signed: Mapping[str, Any]) -> EpsilonTable:
        """The table for the signed numbers of queries, where the public log allows them."""
        policy, records = self.policy, self.outcome.counts.get("records")
        total, realised = (queries_of(signed, name) for name in ("all_records", "realised"))
        if policy is None or records is None or total is None or realised is None:
            return own
        coalition = own.parameters.coalition
        contained, counted = (self._status(name) == PASS for name in ("containment", "counters"))
        least = -(-records // len(policy.tenants)) if contained else 0
        most = min(records, coalition * policy.queries_per_account) if counted else records
        bounds = (("all_records", total, least, records), ("realised", realised, 0, most))
        # The public part does not say whose the records are: a signed number of queries is only
        # refuted where no distribution of so many records could give it.
        for name, value, least, most in bounds:
            if not least <= value <= most:
                text = f"epsilon: {name} counts {value} queries, the log allows {least} to {most}"
                self._differ(_Rank.EPSILON, text)
                return own
        other = table(policy, coalition, total, [realised])
        return replace(own, all_records=other.all_records, realised=other.realised)

    def _compare_sampling(self) -> None:
        signed, recomputed = self._signed.sampling, self.outcome.sampling
        if not self._public:
            self._compare_value(_Rank.NUMBERS, "sampling", signed, recomputed)
            return
        self._not_repeated.append(
            "sampling: which records each stratum holds, and which were drawn"
        )
        strata = signed.get("strata")
        if self.policy is None or not strata or self._status("sampling") != PASS:
            return
        if not all(isinstance(stratum, Mapping) for stratum in strata):
            self._differ(_Rank.NUMBERS, "sampling: strata that are none")
            return
        contained = self._status("containment") == PASS
        records = self.outcome.counts.get("records") if contained else None
        wrong = members.disorder(self.policy, strata, records)
        if wrong:
            self._differ(_Rank.NUMBERS, f"sampling: {wrong}")
        expected = members.expected_sampling(self.policy, strata)
        expected |= {name: recomputed[name] for name in recomputed.keys() & {"rows"}}
        self._compare_value(_Rank.NUMBERS, "sampling", signed, expected)

    def _compare_coalition(self) -> None:
        signed = dict(self._signed.coalition)
        if self._public and self._noised:
            self._not_repeated.append("coalition: the estimate, which needs every record's sketch")
            self._check_estimate(signed)
            signed["estimated"] = None
        self._compare_known(_Rank.NUMBERS, "coalition", signed, self.outcome.coalition)

    def _check_estimate(self, signed: Mapping[str, Any]) -> None:
        """The signed estimate is what the signed status of check 20 says of it."""
        status = self._status("coalition")
        claimed, estimated, most = (signed.get(name) for name in ("claimed", "estimated", "max"))
        if status not in {Status.PASS, Status.EXCEEDED}:
            return
        exceeded = type(estimated) is int and type(most) is int and estimated > most
        if estimated != claimed or exceeded != (status == Status.EXCEEDED):
            text = f"coalition: {claimed} claimed, {estimated} estimated, {most} planned: {status}"
            self._differ(_Rank.NUMBERS, text)

    def _compare_counts(self) -> None:
        signed = self._signed.counts
        self._compare_known(_Rank.NUMBERS, "counts", signed, self.outcome.counts)
        for whole in ("accounts", "records", "charges", "voids"):
            kinds = "" if whole == "accounts" else f"{whole}_"
            parts = (f"{kinds}anchored", f"{kinds}plain")
            numbers = [signed.get(name) for name in (whole, *parts)]
            known = [number for number in numbers if type(number) is int]
            if len(known) == len(numbers) and known[0] != sum(known[1:]):
                text = f"counts: {known[0]} {whole}, but {' + '.join(map(str, known[1:]))} of kinds"
                self._differ(_Rank.NUMBERS, text)

    def _compare_told(self, name: str, what: str = "", *, told: bool = True) -> None:
        signed, recomputed = getattr(self._signed, name), getattr(self.outcome, name)
        if self._public and not told and signed is not None and recomputed is not None:
            self._not_repeated.append(f"{name}: {what}")
            return
        self._compare_value(_Rank.NUMBERS, name, signed, recomputed)

    def _compare_texts(self) -> None:
        counts = dict(self.outcome.counts)
        for name in self._unknown(self._signed.counts, counts):
            counts[name] = self._signed.counts.get(name)
        expected = covered.reach(self.policy, counts)
        assumed = self.outcome.assumptions
        for name, texts in (("not_covered", expected), ("assumptions", assumed)):
            signed = list(getattr(self._signed, name))
            missing = [text for text in texts if text not in signed]
            added = [text for text in signed if text not in texts]
            for what, others in (("leaves out", missing), ("adds", added)):
                for text in others:
                    self._differ(_Rank.TEXTS, f"{name}: the verdict {what} {shown(text)}")
            if not missing and not added and signed != list(texts):
                self._differ(_Rank.TEXTS, f"{name}: repeated or out of order")

    def _compare_time(self) -> None:
        """A verdict is signed after everything that it speaks of."""
        # One-sided: only the verifier's clock says how long after it was signed.
        self._notes.append("when the verdict was signed is the verifier's word alone")
        if self.verdict.result == REFUSED or self.policy is None:
            return
        times = [1000 * self.policy.sampling_instant]
        if self.clock is not None:
            received = chain(self.clock.responses.values(), self.clock.claims.values())
            dates = chain(received, (self.clock.close, self.clock.records))
            times += [time for time in dates if time is not None]
        if self._signed.time < max(times):
            signed, latest = rfc3339(self._signed.time), rfc3339(max(times))
            self._differ(_Rank.IDENTITY, f"time: signed at {signed}, before {latest}")

    def _compare_results(self) -> None:
        """The references of the verdict, with those results that are at hand.

        Results are no part of the audit: one whose file is not at hand leaves nothing of it open.
        """
        references = self._signed.test_results
        if references != self.outcome.test_results:
            text = "test_results: the verdict refers to others than the evidence lists"
            self._differ(_Rank.RESULTS, text)
            return
        for reference in references_of(references):
            name, file = f"test result {reference.name}", self.results.get(reference.name)
            if file is None:
                digest = reference.digest.hex()
                self._notes.append(f"{name}: not looked at, no file has the digest {digest}")
                continue
            try:
                reference.check(file, self.policy_item)
            except RagauditError as error:
                self._differ(_Rank.RESULTS, f"{name}: {error}")
            else:
                self._notes.append(f"{name}: the file is the one that the verdict refers to")

    def _compare_known(
        self, rank: _Rank, name: str, signed: Mapping[str, Any], value: Mapping[str, Any]
    ) -> None:
        """Compare members; from the public part, those that are known there."""
        unknown = self._unknown(signed, value)
        if unknown:
            self._not_repeated.append(f"{name}: {', '.join(sorted(unknown))}")
        pair = ({key: m[key] for key in m if key not in unknown} for m in (signed, value))
        self._compare_value(rank, name, *pair)

    def _unknown(self, signed: Mapping[str, Any], value: Mapping[str, Any]) -> set[str]:
        """Members that the public part does not tell, or that V could not tell without a log."""
        if not self._public:
            return set()
        unknown = {key for key, member in value.items() if member is None}
        if self._log_failed:
            unknown |= {key for key in value if signed.get(key, 0) is None}
        return unknown

    def _compare_value(self, rank: _Rank, where: str, signed: object, value: object) -> None:
        # As it would have been signed: tuples are lists there.
        recomputed = canonical_json.loads(canonical_json.dumps(value))
        for place, one, other in differing(where, signed, recomputed):
            self._differ(rank, f"{place}: signed {shown(one)}, recomputed {shown(other)}")


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
        found = Comparison(
            verdict=verdict,
            outcome=outcome,
            part=bundle.part,
            proofs=proofs,
            policy=policy,
            clock=_clock(bundle),
            embedder=embedder is not None,
            generator=generator is not None,
            policy_item=bundle.evidence.get(items.POLICY, b""),
            results=given,
        ).run(bundle.digests)
    if verdict_key is not None:
        return found
    # A forged bundle carries its forger's key: the reader must compare it.
    text = "the verdict key was taken from the policy in the bundle; compare it: "
    return replace(found, notes=(text + verdict.key.raw.hex(), *found.notes))


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
