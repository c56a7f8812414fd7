"""The verifier's own terms: which policies it audits at all (docs/spec 9.4).

A policy states what the provider promises and how it may be checked, and both may be stated so
loosely that a PASS says nothing: an embedder tolerance that accepts every vector, samples of one,
epsilon 50. The terms are the regulator's; they are applied before the countersignature, which
names their digest, and again in the audit.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.log.tlog_policy import MAX_COSIGNERS
from ragaudit.ledger.messages.policy import Policy, exact
from ragaudit.verifier.channel_costs import largest_loss

FORMAT: Final = "ragaudit/v1/terms"

DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Term:
    """One bound on policies.

    Attributes:
        name: ``most_...`` bounds from above, ``least_...`` from below.
        meaning: for people.
        default: a decimal (text) or an integer.
        low, high: what the bound itself may be.
        of: what it bounds of a policy; None: of the audited window.
        of_noise: whether it bounds what only a window with noise has.
    """

    name: str
    meaning: str
    default: str | int
    low: Fraction
    high: Fraction
    of: Callable[[Policy], str | int | Fraction] | None
    of_noise: bool = False

    def read(self, value: object) -> Fraction:
        """Return the bound that a member of the document states.

        Args:
            value: as the document has it; of the type of ``default``.

        Returns:
            The bound, exactly.

        Raises:
            MalformedError: of another type than the default, or outside low..high.
        """
        # true is an int to Python, and 0.1 is not one tenth: only these two types are exact.
        decimal = isinstance(self.default, str)
        if type(value) is not (str if decimal else int):
            kind = "a decimal in quotes" if decimal else "an integer"
            raise MalformedError("wrong type", where=self.name, expected=kind)
        bound = exact(value) if isinstance(value, str) else Fraction(str(value))
        if not self.low <= bound <= self.high:
            raise MalformedError(
                "out of range", where=self.name, expected=f"{self.low}..{self.high}"
            )
        return bound

    def check(self, bound: Fraction, policy: Policy) -> None:
        """Check that the policy keeps the bound.

        Args:
            bound: as :meth:`read` returned it.

        Raises:
            RejectedError: it does not; names the bound.
        """
        # Of the audited window: check 11 applies it to the log.
        if self.of is None:
            return
        # Without noise nothing is promised that it would bound.
        if self.of_noise and not policy.noised:
            return
        value = self.of(policy)
        number = exact(value) if isinstance(value, str) else Fraction(value)
        most = self.name.startswith("most_")
        if number > bound if most else number < bound:
            side = "at most" if most else "at least"
            shown = _text(value) if isinstance(value, Fraction) else value
            raise RejectedError(
                f"{self.meaning} is {shown}", where=self.name, expected=f"{side} {_text(bound)}"
            )


def _term(
    name: str,
    meaning: str,
    default: str | int,
    high: str | int,
    of: Callable[[Policy], str | int | Fraction] | None,
    *,
    of_noise: bool = False,
) -> Term:
    return Term(name, meaning, default, Fraction(0), Fraction(high), of, of_noise)


TERMS: Final[tuple[Term, ...]] = (
    # Above 1/2 the bad bound b = ceil(beta n) reaches n, and one sample "finds" it.
    _term("most_beta", "the share of bad records that a sample is to find", "0.2", "0.5",
          lambda p: p.audit.beta),
    _term("most_eta_tenants", "the chance to miss them among a tenant's records", "0.05", 1,
          lambda p: p.audit.tenants.eta),
    _term("most_eta_submitters", "the chance to miss them among submitted records", "0.5", 1,
          lambda p: p.audit.submitters.eta),
    _term("least_sample_tenants", "the least sample of a tenant's records", 10, 10**6,
          lambda p: p.audit.tenants.minimum),
    _term("least_sample_submitters", "the least sample of submitted records", 1, 10**6,
          lambda p: p.audit.submitters.minimum),
    _term("least_claimed_anchored_share", "the claimed share of anchored accounts' records", "0", 1,
          None),
    _term("most_epsilon_acc", "epsilon_acc", "20", 1000, lambda p: p.epsilon_acc,
          of_noise=True),
    _term("most_delta_acc", "delta_acc", "0.00001", "0.1", lambda p: p.delta_acc,
          of_noise=True),
    _term("most_delta_policy", "delta_policy", "0.0001", "0.1", lambda p: p.delta_policy,
          of_noise=True),
    _term("least_coalition_max", "coalition_max, or all slots where there are fewer,", 10, 10**6,
          lambda p: 10**6 if p.coalition_max == p.slots else p.coalition_max, of_noise=True),
    _term("least_theta", "the estimator's theta", "0.5", 1, lambda p: p.estimator.theta,
          of_noise=True),
    _term("most_theta", "the estimator's theta", "0.95", 1, lambda p: p.estimator.theta,
          of_noise=True),
    _term("least_tau_seconds", "the estimator's tau", 60, 10**7,
          lambda p: p.estimator.tau_seconds, of_noise=True),
    _term("least_sketch_bits", "the bits of a sketch", 128, 512,
          lambda p: p.estimator.sketch_bits, of_noise=True),
    _term("most_embedder_tolerance", "the embedder's tolerance, a squared distance,", 256, 256,
          lambda p: p.embedder_tolerance),
    _term("most_window_seconds", "the length of the window", 92 * DAY, 400 * DAY,
          lambda p: p.end - p.start),
    _term("most_sampling_delay_seconds", "the time from the end to the sampling instant", 7 * DAY,
          400 * DAY, lambda p: p.sampling_instant - p.end),
    _term("most_deadline_seconds", "the provider's time to answer", 7 * DAY, 10**7,
          lambda p: p.audit.deadline_seconds),
    _term("most_clock_skew_seconds", "the clocks' skew", 60, DAY, lambda p: p.clock_skew_seconds),
    _term("most_merge_delay_seconds", "the merge delay", 600, DAY,
          lambda p: p.merge_delay_seconds),
    _term("most_promise_life_seconds", "a promise's life", 3600, DAY,
          lambda p: p.promise_life_seconds),
    _term("least_beacons", "the number of public beacons that noise and sample depend on", 0, 1,
          lambda p: int(p.beacon is not None)),
    _term("least_further_cosigners", "the number of further cosigners that the audit demands", 0,
          MAX_COSIGNERS, lambda p: p.cosigners.least if p.cosigners else 0),
    _term("least_time_stamps", "the number of demanded time stamps of a checkpoint", 0, 1,
          lambda p: int(p.time_stamps is True)),
    _term("most_claim_margin_share", "the claim margin, in which no anchored account may ask, as a "
          "share of the window", "0.5", 1,
          lambda p: Fraction(p.claim_margin_seconds, p.end - p.start), of_noise=True),
    _term("least_rows_per_document", "the rows of one document that the policy reckons with", 1,
          1000, lambda p: p.rows_per_document, of_noise=True),
    _term("most_generation_epsilon", "the epsilon of one document in the generation channel", "10",
          10**6, lambda p: largest_loss(p)[0]),
    _term("most_generation_delta", "the delta of one document in the generation channel", "0.00001",
          "0.1", lambda p: largest_loss(p)[1]),
    _term("least_generation_replays", "the number of times that sampled answers are recomputed", 0,
          1, lambda p: int(p.generation is None or p.generation.replays)),
    _term("most_differing_votes", "the number of votes of an answer that may differ", 0, 10**6,
          lambda p: 0 if p.generation is None else p.generation.differing_votes or 0),
    _term("least_generation_proofs", "1 if all charges are proven, 0 if those of the sample,", 0, 1,
          lambda p: int(p.generation is None or p.generation.prove == "all")),
    _term("least_answer_delay_seconds", "the time from a charge to its answer", 2, 3600,
          lambda p: 3600 if p.generation is None else p.generation.answer_delay_seconds),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terms:
    """A verifier's terms; ``canonical`` is the document, ``bounds`` its members as fractions."""

    canonical: bytes
    bounds: Mapping[str, Fraction]

    @property
    def digest(self) -> bytes:
        """What the countersignature and the verdict name, 32 bytes."""
        return structure("terms", self.canonical)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "Terms":
        """Return the terms with these members, the shipped defaults elsewhere.

        Args:
            values: of the document, which may leave out ``format``.

        Raises:
            MalformedError: an unknown member, or one of the wrong type or out of range.
        """
        if values.get("format", FORMAT) != FORMAT:
            raise MalformedError("not terms", where="format", expected=FORMAT)
        # A misspelt term would silently be the shipped one.
        unknown = sorted(set(values) - {term.name for term in TERMS} - {"format"})
        if unknown:
            where, expected = unknown[0][:64], "ragaudit verifier terms"
            raise MalformedError("not a term", where=where, expected=expected)
        stated = {term.name: values.get(term.name, term.default) for term in TERMS}
        bounds = {term.name: term.read(stated[term.name]) for term in TERMS}
        return cls(canonical_json.dumps({"format": FORMAT, **stated}), bounds)

    @classmethod
    def parse(cls, data: bytes) -> "Terms":
        """Return the terms of canonical JSON with every member, as evidence holds them.

        Raises:
            MalformedError: anything else.
        """
        value = canonical_json.loads(data)
        # With defaults filled in, two documents would have one meaning and two digests.
        if not isinstance(value, dict) or "format" not in value:
            raise MalformedError("not terms", expected="an object with a format")
        terms = cls.of(value)
        if terms.canonical != data:
            raise MalformedError("not all terms", expected="every member")
        return terms

    @classmethod
    def load(cls, path: Path) -> "Terms":
        """Return the terms of a file; members left out have their defaults.

        Args:
            path: TOML, or JSON where the name ends with ``.json``.

        Raises:
            MalformedError: no such file, not TOML or JSON, or as for :meth:`of`.
        """
        try:
            text = path.read_text(encoding="utf-8")
            value = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except (OSError, ValueError) as error:
            raise MalformedError("terms cannot be read", where=str(path)) from error
        if not isinstance(value, dict):
            raise MalformedError("terms are not a table", where=str(path))
        try:
            return cls.of(value)
        except MalformedError as error:
            where = f"{path}: {error.where}"
            raise MalformedError(error.what, where=where, expected=error.expected) from error

    def check(self, policy: Policy) -> None:
        """Check a policy against every bound.

        Raises:
            RejectedError: naming the first term that it does not keep.
        """
        for term in TERMS:
            term.check(self.bounds[term.name], policy)

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON value."""
        value: dict[str, Any] = canonical_json.loads(self.canonical)
        return value

    def to_toml(self) -> str:
        """Return the document as TOML, each term with its meaning."""
        values = self.to_json()
        lines = [f"format = {json.dumps(values['format'])}"]
        for term in TERMS:
            lines += ["", f"# {term.meaning.rstrip(',')}"]
            lines.append(f"{term.name} = {json.dumps(values[term.name])}")
        return "\n".join(lines) + "\n"


def _text(bound: Fraction) -> str:
    return str(bound) if bound.denominator == 1 else f"{float(bound):.12g}"


DEFAULT: Final = Terms.of({})
"""The terms that are shipped: what an auditor who has set none applies."""
