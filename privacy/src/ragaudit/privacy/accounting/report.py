"""The epsilon table of a verdict (docs/spec/07-coalition.md §7.4)."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.decimals import ceil_decimal, floor_decimal, is_decimal
from ragaudit.encoding.errors import InternalError, InvalidArgumentError
from ragaudit.privacy.accounting import closed_form, gaussian, loss_distribution, renyi, risk
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.normal import decimal_of, precise
from ragaudit.privacy.numbers import Number, count, exact, sequence

__all__ = ["CANDIDATES", "epsilon_report"]

PLACES = 6
# The cross-check is binary floating point; fewer places are the same on every machine.
CROSS_CHECK_PLACES = 2
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
) -> dict[str, object]:
    """Return the whole epsilon table as values for canonical JSON.

    Numbers are integers or decimal strings; decimals with 6 places are rounded up, against
    the provider (``floor`` in a member's name: down). A value that does not exist is null
    with a reason beside it; ``finite`` says whether the headline exists.

    Args:
        sigma: cosine units; like all numbers here it has at most 12 places, as a policy's has.
        relation: "replace" or "null-replace".
        group_size: g, rows per privacy unit.
        queries_per_account: r.
        coalition: the number of accounts that pool their answers, k_max (or a larger c).
        delta_policy, epsilon_acc, delta_acc: as a policy has them.
        gamma: distance of one noise sample.
        total_records: records of the tenant that has most; the table does not need k_max.
        realised_counts: logged records per account.

    Raises:
        InvalidArgumentError: an argument out of its range.
    """
    sigma = _text(sigma, "sigma")
    delta_policy, delta_acc = _text(delta_policy, "delta_policy"), _text(delta_acc, "delta_acc")
    epsilon_acc = _text(epsilon_acc, "epsilon_acc")
    target = exact(delta_policy, "delta_policy", above=0, below=1)
    loss = exact(epsilon_acc, "epsilon_acc", above=0)
    target_acc = exact(delta_acc, "delta_acc", above=0, below=1)
    count(queries_per_account, "queries_per_account")
    count(coalition, "coalition")
    count(total_records, "total_records", least=0)
    counts = [count(each, "realised_counts", least=0)
        for each in sequence(realised_counts, "realised_counts")]  # fmt: skip
    gamma = exact(gamma, "gamma", least=0, below=1)
    single = NoisyScores.of_policy(sigma, relation, group_size, queries_per_account, gamma)
    event = single.with_queries(coalition * queries_per_account)
    largest = sum(sorted(counts, reverse=True)[:coalition])
    headline = _headline(event, target)
    return {
        "parameters": {
            "sigma": sigma,
            "sigma_units": _exact(event.sigma_units),
            "relation": relation,
            "group_size": group_size,
            "squared_sensitivity_units": event.squared_sensitivity,
            "queries_per_account": queries_per_account,
            "coalition": coalition,
            "delta_policy": delta_policy,
            "gamma": _gamma(gamma),
        },
        "finite": headline["epsilon"] is not None,
        "headline": headline,
        "gaussian_limit": _limit(event, target),
        "renyi": _renyi(event, target),
        "loss_distribution": _cross_check(event, target),
        "closed_form": _closed_form(single, coalition, target, loss, target_acc),
        "per_account": _per_account(single, loss, target_acc, epsilon_acc, delta_acc),
        "all_records": _headline(event.with_queries(total_records), target),
        "realised": {
            **_headline(event.with_queries(largest), target),
            "label": "from the counts of this window's log; not a guarantee",
        },
        "risk": _risk(event),
    }


def _headline(event: NoisyScores, target: Fraction) -> dict[str, object]:
    found = gaussian.least_epsilon(event.mu(), target, event.slack)
    result: dict[str, object] = {
        "queries": event.queries,
        "mu": _up(event.mu()),
        "epsilon": None if found is None else _up(found),
    }
    if found is None:
        result["reason"] = "no epsilon solves the delta equation: there is no finite bound"
    return result


def _limit(event: NoisyScores, target: Fraction) -> dict[str, object]:
    mu = event.mu_gaussian_limit()
    found = gaussian.least_epsilon(mu, target)
    if found is None:
        raise InternalError("no epsilon without slack", where="gaussian limit")
    return {
        "mu": _up(mu),
        "epsilon": _up(found),
        "label": "continuous Gaussian of the same parameter, ideal sampler; for comparison only",
    }


def _renyi(event: NoisyScores, target: Fraction) -> dict[str, object]:
    found = renyi.bound(event, target)
    # At epsilon 0 many orders give the same.
    order = None if found is None or not found.epsilon else Fraction(found.order)
    return {
        "rho": _up(decimal_of(event.rho())),
        "epsilon": None if found is None else _up(found.epsilon),
        "order_floor": None if order is None else floor_decimal(order, PLACES),
        "label": "zero-concentrated DP of the discrete Gaussian; a guarantee of its own",
    }


def _cross_check(event: NoisyScores, target: Fraction) -> dict[str, object]:
    found = loss_distribution.epsilon(event, target)
    reference = gaussian.least_epsilon(event.mu_gaussian_limit(), target)
    if found is None or reference is None:
        return {"epsilon": None, "agrees": None, "reason": "mu is zero or too large for it"}
    return {
        "epsilon": ceil_decimal(Fraction(found), CROSS_CHECK_PLACES),
        "agrees": loss_distribution.agrees(found, reference),
        "label": "dp-accounting, of the Gaussian limit; a cross-check",
    }


@precise
def _closed_form(
    single: NoisyScores, coalition: int, target: Fraction, loss: Fraction, target_acc: Fraction
) -> dict[str, object]:
    label = "the paper's (5.2); a bound only for noise inside its class, and a loose one"
    none = {"leading": None, "residual": None, "total": None, "label": label}
    if closed_form.per_query(loss, target_acc, single.queries)[0] >= 1:
        return {
            **none,
            "least_sigma_units": None,
            "in_class": False,
            "reason": "eps_q of (3.1) is not below 1: its class is empty",
        }
    least = closed_form.class_sigma(
        loss, target_acc, single.queries, decimal_of(Fraction(single.squared_sensitivity)).sqrt()
    )
    result: dict[str, object] = {
        **none,
        "least_sigma_units": _up(least),
        "in_class": decimal_of(single.sigma_units) >= least,
    }
    if not closed_form.well_formed(target, coalition, target_acc):
        return {**result, "reason": "delta_policy does not exceed k delta_acc"}
    found = closed_form.closed_form(
        loss, target_acc, single.queries, coalition, target - coalition * target_acc
    )
    return {
        **result,
        "leading": _up(found.leading),
        "residual": _up(found.residual),
        "total": _up(found.leading + found.residual),
    }


def _per_account(
    single: NoisyScores, loss: Fraction, target_acc: Fraction, epsilon_acc: str, delta_acc: str
) -> dict[str, object]:
    return {
        **_headline(single, target_acc),
        "epsilon_acc": epsilon_acc,
        "delta_acc": delta_acc,
        "satisfied": gaussian.gives(single, loss, target_acc),
    }


@precise
def _risk(event: NoisyScores) -> dict[str, object]:
    mu, between_records = event.mu(), risk.record_mu(event)
    # Each of the two laws is within the slack of its ideal; between records under
    # null-replace two such steps are taken.
    sampler = decimal_of(2 * event.slack)
    wider = sampler * (1 if between_records == mu else 2)
    priors = []
    for candidates in CANDIDATES:
        prior = risk.Prior.uniform(candidates)
        # No attacker's advantage exceeds 1 - kappa, whatever the mechanism.
        most = 1 - decimal_of(prior.collision)
        attribute = risk.attribute_advantage(between_records, prior) + wider
        reconstruction = risk.reconstruction_advantage(between_records, prior) + wider
        priors.append(
            {
                "candidates": candidates,
                "attribute": _up(min(most, attribute)),
                "reconstruction": _up(min(most, reconstruction)),
            }
        )
    return {
        "membership_advantage": _up(min(Decimal(1), risk.membership_advantage(mu) + sampler)),
        "auc": _up(min(Decimal(1), risk.auc(mu) + sampler)),
        "uniform_priors": priors,
        "label": "upper limits for every attacker; reconstruction assumes no knowledge about "
        "the target beyond the prior, attribute allows any",
    }


def _text(value: Number, where: str) -> str:
    """A policy's decimal, as it stands there."""
    number = exact(value, where, least=0, most=10**9)
    if isinstance(value, str) and is_decimal(value):
        return value
    text = _exact(number)
    if Fraction(text) != number:
        raise InvalidArgumentError(
            "more than 12 places", where=where, expected="a policy's decimal, as text"
        )
    return text


def _up(value: Decimal) -> str:
    return ceil_decimal(Fraction(value), PLACES)


def _exact(value: Fraction) -> str:
    """A rational whose denominator divides a power of ten, without trailing zeros."""
    return floor_decimal(value, 12).rstrip("0").rstrip(".")


def _gamma(gamma: Fraction) -> str:
    exponent = gamma.denominator.bit_length() - 1
    if gamma.numerator == 1 and gamma.denominator == 1 << exponent:
        return f"2^-{exponent}"
    return str(gamma)
