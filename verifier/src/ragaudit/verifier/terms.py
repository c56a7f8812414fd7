"""The verifier's own terms: which policies it audits at all (docs/spec 9.4).

A policy states what the provider promises and how it may be checked, and both may be stated so
loosely that a PASS says nothing: an embedder tolerance that accepts every vector, samples of one,
epsilon 50. The terms are the regulator's; they are applied before the countersignature, which
names their digest, and again in the audit. A term is a number that bounds policies, or a list of
what the verifier knows; what the generation channel costs a document (10.10) is bounded too.
"""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tlog_policy import MAX_COSIGNERS
from ragaudit.ledger.messages.generation_terms import KeywordVoting
from ragaudit.ledger.messages.policy import Policy, exact
from ragaudit.ledger.messages.policy_terms import (
    HAND_IN_SECONDS,
    MAX_DELAY,
    RowTerms,
    time_to_hand_in,
)
from ragaudit.privacy.accounting.generation import (
    ChannelCosts,
    ChannelEpsilon,
    KeywordChannelEpsilon,
    Loss,
)

MAX_KNOWN: Final = 1000
"""Entries of one list: a file of a person."""


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
        raised: what the bound becomes for a policy that asks for more than the verifier does.
    """

    name: str
    meaning: str
    default: str | int
    low: Fraction
    high: Fraction
    of: Callable[[Policy], str | int | Fraction] | None
    of_noise: bool = False
    raised: Callable[[Policy, Fraction], Fraction] = lambda _, bound: bound

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
        value, bound = self.of(policy), self.raised(policy, bound)
        number = exact(value) if isinstance(value, str) else Fraction(value)
        most = self.name.startswith("most_")
        if number > bound if most else number < bound:
            side = "at most" if most else "at least"
            shown = _bound_text(value) if isinstance(value, Fraction) else value
            raise RejectedError(
                f"{self.meaning} is {shown}",
                where=self.name,
                expected=f"{side} {_bound_text(bound)}",
            )


@dataclass(frozen=True, slots=True)
class Known:
    """A list of what the verifier knows from elsewhere; nobody else decides who is trusted.

    Attributes:
        name: member of the document.
        meaning: for people.
        form: of one text; raises MalformedError for any other.
        of: what a policy names, all of which must be known; None: the audit says what is known.
    """

    name: str
    meaning: str
    form: Callable[[str], object]
    of: Callable[[Policy], Iterable[str]] | None

    def read(self, value: object) -> tuple[str, ...]:
        """Return the texts that a member of the document states.

        Args:
            value: as the document has it.

        Raises:
            MalformedError: not a list of at most `MAX_KNOWN` such texts, rising and distinct.
        """
        texts = value if isinstance(value, list) else [None]
        if len(texts) > MAX_KNOWN or not all(isinstance(each, str) for each in texts):
            most = f"a list of at most {MAX_KNOWN} texts"
            raise MalformedError("wrong type", where=self.name, expected=most)
        if texts != sorted(set(texts)):
            raise MalformedError("not rising and distinct", where=self.name)
        for number, text in enumerate(texts):
            try:
                self.form(text)
            except MalformedError as error:
                where = f"{self.name}/{number}"
                raise MalformedError(error.what, where=where, expected=error.expected) from error
        return tuple(texts)

    def check(self, known: Iterable[str], policy: Policy) -> None:
        """Check that the policy names nothing that is not known.

        Args:
            known: as :meth:`read` returned it.

        Raises:
            RejectedError: it does; names the first.
        """
        strange = sorted(set(() if self.of is None else self.of(policy)) - set(known))
        if strange:
            raise RejectedError(
                f"{strange[0]} is not among {self.meaning}", where=self.name,
                expected=f"of the {len(set(known))} that the verifier lists",
            )  # fmt: skip


def _bound_text(bound: Fraction) -> str:
    return str(bound) if bound.denominator == 1 else f"{float(bound):.12g}"


_DRAWS: Final = 2
"""Coins of one token at most: the test, and the choice."""


def channel_costs(policy: Policy, charges: int) -> ChannelCosts:
    """Return what the channel costs, as policy and log have it.

    Args:
        policy: with a generation channel.
        charges: entries of the log; 0 before the window, when no coin is drawn yet.
    """
    terms = policy.generation
    assert terms is not None
    answerer = terms.answerer
    if isinstance(answerer, KeywordVoting):
        return KeywordChannelEpsilon(
            uses=terms.uses,
            epsilon_choice=answerer.epsilon_choice,
            sigma=answerer.sigma,
            delta_test=answerer.delta_test,
            delta_conversion=answerer.delta_conversion,
            # The permutation, the choice and the test.
            draws=charges * (answerer.voters + 1),
        )
    bins = 0 if terms.adaptive is None else len(terms.adaptive.edges)
    # The counts, the threshold of a vote, the permutation, and what each token may draw.
    each = bins + 1 + (answerer.slots - 1) + _DRAWS * answerer.tokens
    return ChannelEpsilon(
        mechanism=terms.mechanism,
        uses=terms.uses,
        question=terms.epsilon,
        group=policy.rows_per_document,
        draws=charges * each,
        private=min(answerer.tokens, int(terms.answer_epsilon / answerer.epsilon_token)),
    )


def largest_loss(policy: Policy) -> Loss:
    """Return what all answers of a window tell of one document that is replaced, at most.

    All factors are in: uses, rows of a document, and that two documents are replaced by each other.

    Args:
        policy: any; without a generation channel nothing is lost.
    """
    return loss_under(policy, NeighboringRelation.REPLACE)


def loss_under(policy: Policy, relation: str) -> Loss:
    """Return what all answers of a window tell of one document, at most.

    Args:
        policy: any; without a generation channel nothing is lost.
        relation: what becomes of the document.
    """
    if policy.generation is None:
        return Loss(Fraction(0), Fraction(0))
    costs = channel_costs(policy, 0)
    replaced = relation == NeighboringRelation.REPLACE
    loss = costs.replace_one if replaced else costs.replace_one_null
    return loss if isinstance(loss, Loss) else Loss(loss, Fraction(0))


FORMAT: Final = "ragaudit/v1/terms"

DAY: Final = 86_400


def _term(
    name: str,
    meaning: str,
    default: str | int,
    high: str | int,
    of: Callable[[Policy], str | int | Fraction] | None,
    **more: Any,
) -> Term:
    return Term(name, meaning, default, Fraction(0), Fraction(high), of, **more)


def _enough_time(policy: Policy, bound: Fraction) -> Fraction:
    """Return the least time from the end to the sampling instant, seconds: accounts hand in."""
    # Less than the minute is for verifiers whose terms ask for less: nobody hands in by hand there.
    needed = time_to_hand_in(policy.merge_delay_seconds, policy.clock_skew_seconds)
    return max(bound, needed - max(Fraction(0), HAND_IN_SECONDS - bound))


def _further_cosigners(policy: Policy) -> list[str]:
    return [] if policy.cosigners is None else [str(key) for key in policy.cosigners.trust.keys]


def _rows(policy: Policy) -> tuple[RowTerms, ...]:
    """How rows are sampled; nothing where none are."""
    rows = None if policy.owners is None else policy.owners.rows
    return () if rows is None else (rows,)


TERMS: Final[tuple[Term, ...]] = (
    # Above 1/2 the bad bound b = ceil(beta n) reaches n, and one sample "finds" it.
    _term("most_beta", "the share of bad records, or rows, that a sample is to find", "0.2", "0.5",
          lambda p: max((p.audit.beta, *(r.beta for r in _rows(p))), key=exact)),
    _term("most_eta_tenants", "the chance to miss them among a tenant's records or rows", "0.05", 1,
          lambda p: max((p.audit.tenants.eta, *(r.sample.eta for r in _rows(p))), key=exact)),
    _term("most_eta_submitters", "the chance to miss them among submitted records", "0.5", 1,
          lambda p: p.audit.submitters.eta),
    _term("least_sample_tenants", "the least sample of a tenant's records or rows", 10, 10**6,
          lambda p: min((p.audit.tenants.minimum, *(r.sample.minimum for r in _rows(p))))),
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
    _term("least_noise", "1 if answers are noised, 0 if not,", 0, 1, lambda p: int(p.noised)),
    _term("least_replacement", '1 if the relation is "replace", 0 if "null-replace",', 0, 1,
          lambda p: int(p.relation == NeighboringRelation.REPLACE), of_noise=True),
    _term("most_top_k", "the largest K of a noised answer", 100, 1000, lambda p: p.top_k_max,
          of_noise=True),
    _term("most_public_columns", "the number of columns that are public beside noise", 64, 64,
          lambda p: len(p.retrieval.public_columns), of_noise=True),
    _term("least_disclosures", "1 if V sees the texts of sampled records, 0 if not,", 0, 1,
          lambda p: int(p.query_text_disclosure == "sampled")),
    _term("least_strata_by_account", "1 if all, or by account submitted, records are sampled, 0 if "
          "by tenant,", 0, 1,
          lambda p: int(p.audit.mode == "A" or p.audit.submitters_by == "account")),
    _term("least_direction_estimates", "1 if the coalition estimate is that of 7.5, else 0,", 0, 1,
          lambda p: int(p.by_direction), of_noise=True),
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
    _term("most_withheld_share", "the share of a tenant's answers that withhold rows", "1", 1,
          None),
    _term("most_embedder_tolerance", "the embedder's tolerance, a squared distance,", 4, 256,
          lambda p: p.embedder_tolerance),
    _term("most_norm_ratio", "largest_norm as a multiple of the longest row's norm", "4", 10**9,
          None),
    _term("most_overlapping_windows", "the number of other windows for a tenant at once", 0,
          10**4, None),
    _term("most_window_seconds", "the length of the window", 92 * DAY, 400 * DAY,
          lambda p: p.end - p.start),
    _term("least_sampling_delay_seconds", "the time from the end to the sampling instant", 3600,
          400 * DAY, lambda p: p.sampling_instant - p.end, raised=_enough_time),
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
    _term("least_beacon_delay_seconds", "the least delay of a beacon's rounds", 0, MAX_DELAY,
          lambda p: MAX_DELAY if p.beacon is None else p.beacon.delay_seconds),
    _term("least_claim_margin_seconds", "the time before the end in which no promise is made", 60,
          DAY, lambda p: p.claim_margin_seconds, of_noise=True),
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
    _term("most_votes", "the votes of an answer, each asked again", 2**16, 2**28,
          lambda p: 0 if p.generation is None else p.generation.answerer.votes),
    _term("most_differing_votes", "the number of votes of an answer that may differ", 0, 10**6,
          lambda p: 0 if p.generation is None else p.generation.differing_votes or 0),
    _term("least_generation_proofs", "1 if all charges are proven, 0 if those of the sample,", 0, 1,
          lambda p: int(p.generation is None or p.generation.charges.prove == "all")),
    _term("most_void_share", "the share of a tenant's charges that have no answer", "1", 1, None),
    _term("least_answer_delay_seconds", "the time from a charge to its answer", 2, 3600,
          lambda p: 3600 if p.generation is None else p.generation.answer_delay_seconds),
)  # fmt: skip

KNOWN: Final[tuple[Known, ...]] = (
    Known("further_cosigners", "the further cosigners that the verifier knows", VerifierKey.parse,
          _further_cosigners),
    Known("known_models", "the digests of embedders and generators that the verifier knows from "
          "elsewhere", lambda text: hex_decode(text, 32), None),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terms:
    """A verifier's terms.

    Attributes:
        canonical: the document.
        bounds: its numbers, exactly, by name of `TERMS`.
        known: its lists, by name of `KNOWN`.
    """

    canonical: bytes
    bounds: Mapping[str, Fraction]
    known: Mapping[str, tuple[str, ...]]

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
        names = {"format", *(term.name for term in TERMS), *(each.name for each in KNOWN)}
        unknown = sorted(set(values) - names)
        if unknown:
            where, expected = unknown[0][:64], "ragaudit verifier terms"
            raise MalformedError("not a term", where=where, expected=expected)
        stated = {term.name: values.get(term.name, term.default) for term in TERMS}
        lists = {each.name: values.get(each.name, []) for each in KNOWN}
        bounds = {term.name: term.read(stated[term.name]) for term in TERMS}
        known = {each.name: each.read(lists[each.name]) for each in KNOWN}
        return cls(canonical_json.dumps({"format": FORMAT, **stated, **lists}), bounds, known)

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
            said = error.strerror if isinstance(error, OSError) else error
            raise MalformedError(f"terms cannot be read: {said}", where=str(path)) from error
        if not isinstance(value, dict):
            raise MalformedError("terms are not a table", where=str(path))
        try:
            return cls.of(value)
        except MalformedError as error:
            where = f"{path}: {error.where}"
            raise MalformedError(error.what, where=where, expected=error.expected) from error

    def check(self, policy: Policy) -> None:
        """Check a policy against every bound and list.

        Raises:
            RejectedError: naming the first term that it does not keep.
        """
        for term in TERMS:
            term.check(self.bounds[term.name], policy)
        for each in KNOWN:
            each.check(self.known[each.name], policy)

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON value."""
        value: dict[str, Any] = canonical_json.loads(self.canonical)
        return value

    def to_toml(self) -> str:
        """Return the document as TOML, each term with its meaning."""
        values = self.to_json()
        lines = [f"format = {json.dumps(values['format'])}"]
        meanings = {term.name: term.meaning for term in TERMS}
        meanings |= {each.name: each.meaning for each in KNOWN}
        for name, meaning in meanings.items():
            lines += ["", f"# {meaning.rstrip(',')}", f"{name} = {json.dumps(values[name])}"]
        return "\n".join(lines) + "\n"


DEFAULT: Final = Terms.of({})
"""The terms that are shipped: what an auditor who has set none applies."""
