"""Computing the epsilon table of a verdict (docs/spec/07-coalition.md §7.4)."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.errors import InternalError, InvalidArgumentError
from ragaudit.encoding.text import ceil_decimal, floor_decimal, is_decimal
from ragaudit.privacy.accounting import accountants, collusion, gaussian, renyi, risk
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.table import (
    CROSS_CHECK_PLACES,
    PLACES,
    ClosedForm,
    CrossCheck,
    EpsilonTable,
    GaussianLimit,
    Headline,
    Parameters,
    PerAccount,
    PriorRisk,
    RenyiRow,
    Risk,
    exact_text,
)
from ragaudit.privacy.guarantees import (
    ApproximateDp,
    GaussianDp,
    TotalVariation,
    ZeroConcentratedDp,
)
from ragaudit.privacy.normal import decimal_of, precise
from ragaudit.privacy.numbers import Number, count, exact, sequence

CANDIDATES = (2, 10, 100)
"""Sizes of the uniform priors for which attribute and reconstruction risk is stated."""


def epsilon_report(
    sigma: Number,
    relation: str,
    group_size: int,
    queries_per_account: int,
    coalition: int,
    delta_policy: Number,
    gamma: Number,
    total_records: int,
    realised_counts: Sequence[int],
    epsilon_acc: Number,
    delta_acc: Number,
) -> EpsilonTable:
    """Return the whole epsilon table.

    Numbers have 6 places, the cross-check 2, and are rounded up, against the provider (``floor`` in
    a member's name: down). A value that does not exist is None.

    Args:
        sigma: cosine units; like all numbers here it has at most 12 places, as a policy's has.
        relation: "replace" or "null-replace".
        group_size: g, rows per privacy unit.
        queries_per_account: r.
        coalition: the number of accounts that pool their answers, k_max (or a larger c).
        delta_policy, epsilon_acc, delta_acc: as a policy has them.
        gamma: total-variation distance of one noise sample, in [0, 1).
        total_records: records of the tenant that has most; its guarantee needs no k_max.
        realised_counts: logged records per account.

    Raises:
        InvalidArgumentError: an argument out of its range.
    """
    # Texts before numbers: the table repeats the policy's own digits.
    sigma = _text(sigma, "sigma")
    delta_policy, delta_acc = _text(delta_policy, "delta_policy"), _text(delta_acc, "delta_acc")
    epsilon_acc = _text(epsilon_acc, "epsilon_acc")
    target = exact(delta_policy, "delta_policy", above=0, below=1)
    loss = exact(epsilon_acc, "epsilon_acc", above=0)
    target_acc = exact(delta_acc, "delta_acc", above=0, below=1)
    count(queries_per_account, "queries_per_account")
    count(coalition, "coalition")
    count(total_records, "total_records", least=0)
    counts = [count(number, "realised_counts", least=0)
        for number in sequence(realised_counts, "realised_counts")]  # fmt: skip
    gamma = exact(gamma, "gamma", least=0, below=1)
    single = NoisyScores.of_policy(sigma, relation, group_size, queries_per_account, gamma)
    # All accounts at their full allowance: what they asked is seen only afterwards (`realised`).
    event = single.with_queries(coalition * queries_per_account)
    largest = sum(sorted(counts, reverse=True)[:coalition])
    return EpsilonTable(
        parameters=Parameters(
            sigma=sigma,
            sigma_units=event.sigma_units,
            relation=event.relation,
            group_size=event.group_size,
            squared_sensitivity_units=event.squared_sensitivity,
            queries_per_account=queries_per_account,
            coalition=coalition,
            delta_policy=delta_policy,
            gamma=gamma,
        ),
        headline=_headline(event, target),
        gaussian_limit=_limit(event, target),
        renyi=_renyi(event, target),
        loss_distribution=_cross_check(event, target),
        closed_form=_closed_form(single, coalition, target, loss, target_acc),
        per_account=PerAccount(
            headline=_headline(single, target_acc),
            epsilon_acc=epsilon_acc,
            delta_acc=delta_acc,
            # Before rounding: a promise that just holds must not fail by the last place (7.4).
            satisfied=gaussian.gives(single, loss, target_acc),
        ),
        all_records=_headline(event.with_queries(total_records), target),
        realised=_headline(event.with_queries(largest), target),
        risk=_risk(event),
    )


def _headline(event: NoisyScores, target: Fraction) -> Headline:
    epsilon = gaussian.least_epsilon(event.mu(), target, event.slack)
    return Headline(
        queries=event.queries,
        ideal=GaussianDp(_up(event.mu()), event.relation),
        guarantee=None if epsilon is None else ApproximateDp(_up(epsilon), target, event.relation),
    )


def _limit(event: NoisyScores, target: Fraction) -> GaussianLimit:
    # Without the kernel's share of the variance and without slack: a limit, no bound.
    mu = event.mu_gaussian_limit()
    epsilon = gaussian.least_epsilon(mu, target)
    if epsilon is None:
        raise InternalError("no epsilon without slack", where="gaussian limit")
    return GaussianLimit(
        ideal=GaussianDp(_up(mu), event.relation),
        approximate=ApproximateDp(_up(epsilon), target, event.relation),
    )


def _renyi(event: NoisyScores, target: Fraction) -> RenyiRow:
    concentrated = ZeroConcentratedDp(_up(decimal_of(event.rho())), event.relation)
    best = renyi.bound(event, target)
    if best is None:
        return RenyiRow(concentrated, guarantee=None, order_floor=None)
    # At epsilon 0 many orders give the same.
    order = Fraction(floor_decimal(Fraction(best.order), PLACES)) if best.epsilon else None
    guarantee = ApproximateDp(_up(best.epsilon), target, event.relation)
    return RenyiRow(concentrated, guarantee, order)


def _cross_check(event: NoisyScores, target: Fraction) -> CrossCheck:
    value = accountants.library_epsilon(event, target)
    reference = gaussian.least_epsilon(event.mu_gaussian_limit(), target)
    if value is None or reference is None:
        return CrossCheck(approximate=None, agrees=None)
    # Two places: binary arithmetic differs between machines beyond them (spec 7.4.2).
    epsilon = Fraction(ceil_decimal(Fraction(value), CROSS_CHECK_PLACES))
    return CrossCheck(
        approximate=ApproximateDp(epsilon, target, event.relation),
        agrees=accountants.agrees(value, reference),
    )


@precise
def _closed_form(
    single: NoisyScores, coalition: int, target: Fraction, loss: Fraction, target_acc: Fraction
) -> ClosedForm:
    if collusion.per_query(loss, target_acc, single.queries)[0] >= 1:
        return ClosedForm(None, None, None, least_sigma_units=None, in_class=False)
    least = collusion.class_sigma(
        loss, target_acc, single.queries, decimal_of(Fraction(single.squared_sensitivity)).sqrt()
    )
    # Less noise than (3.4) asks for, and (5.2) proves nothing about it.
    in_class = decimal_of(single.sigma_units) >= least
    if not collusion.well_formed(target, coalition, target_acc):
        return ClosedForm(None, None, None, _up(least), in_class)
    form = collusion.closed_form(
        loss, target_acc, single.queries, coalition, target - coalition * target_acc
    )
    # The sum is rounded, not its terms: each rounding may add a millionth.
    total = ApproximateDp(_up(form.leading + form.residual), target, single.relation)
    return ClosedForm(_up(form.leading), _up(form.residual), total, _up(least), in_class)


@precise
def _risk(event: NoisyScores) -> Risk:
    mu, between_records = event.mu(), risk.record_mu(event)
    # Each of the two laws is within the slack of its ideal; between records under
    # null-replace two such steps are taken.
    sampler = decimal_of(2 * event.slack)
    wider = sampler * (1 if between_records == mu else 2)
    priors = []
    for candidates in CANDIDATES:
        prior = risk.PriorSummary.uniform(candidates)
        # No attacker's advantage exceeds 1 - kappa, whatever the mechanism.
        most = 1 - decimal_of(prior.collision_probability)
        attribute = risk.attribute_advantage(between_records, prior) + wider
        reconstruction = risk.reconstruction_advantage(between_records, prior) + wider
        priors.append(
            PriorRisk(candidates, _up(min(most, attribute)), _up(min(most, reconstruction)))
        )
    membership = _up(min(Decimal(1), risk.membership_advantage(mu) + sampler))
    return Risk(
        membership=TotalVariation(membership, event.relation),
        auc=_up(min(Decimal(1), risk.auc(mu) + sampler)),
        uniform_priors=tuple(priors),
    )


def _text(value: Number, where: str) -> str:
    """Return a policy's decimal, as it stands there."""
    number = exact(value, where, least=0, most=10**9)
    # As the policy has it, trailing zeros included: the verdict repeats what was signed.
    if isinstance(value, str) and is_decimal(value):
        return value
    text = exact_text(number)
    if Fraction(text) != number:
        raise InvalidArgumentError(
            "more than 12 places", where=where, expected="a policy's decimal, as text"
        )
    return text


def _up(value: Decimal) -> Fraction:
    """Return the least number of 6 places that is not below ``value``."""
    return Fraction(ceil_decimal(Fraction(value), PLACES))
