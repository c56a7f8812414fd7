"""Write epsilon.json: known answers for docs/spec/07-coalition.md §7.4, the table to the byte.

Run `python tests/vectors/make_epsilon.py` to regenerate; the tests compare bit for bit.
Independent of ragaudit.privacy: 80-digit floating point (mpmath), bisection, the formulas of the
chapter. A number too close to a multiple of the last place to be rounded safely stops the script.
"""

import json
from fractions import Fraction
from pathlib import Path

from mpmath import ceil, erfc, erfinv, exp, floor, log, mp, mpf, sqrt

FOLDER = Path(__file__).parent
mp.dps = 80
UNIT = 127 * 127
MARGIN = mpf(10) ** -50
BINARY = mpf(10) ** -6
"""Far above what binary floating point loses of the member `loss_distribution`."""


def number(value: object) -> mpf:
    fraction = Fraction(value)  # type: ignore[call-overload]
    return mpf(fraction.numerator) / fraction.denominator


def decimal(value: mpf, *, up: bool = True, places: int = 6, margin: mpf = MARGIN) -> str:
    """Six places, rounded up (or down)."""
    scaled = value * 10**places
    if abs(scaled - floor(scaled + mpf("0.5"))) < margin and scaled != floor(scaled):
        raise ArithmeticError("too close to tell")
    whole = int(ceil(scaled) if up else floor(scaled))
    return f"{whole // 10**places}.{whole % 10**places:0{places}d}"


def tail(x: mpf) -> mpf:
    return erfc(x / sqrt(mpf(2))) / 2


def upper_quantile(share: mpf) -> mpf:
    """x with tail(x) = share."""
    return sqrt(mpf(2)) * erfinv(1 - 2 * share)


def delta_of(mu: mpf, epsilon: mpf) -> mpf:
    return tail(epsilon / mu - mu / 2) - exp(epsilon) * tail(epsilon / mu + mu / 2)


def least_epsilon(mu: mpf, target: mpf, slack: mpf) -> mpf | None:
    """Least epsilon >= 0 with delta_mu(epsilon) + (1 + e^epsilon) slack <= target, or None."""
    if mu == 0:
        return mpf(0) if 2 * slack <= target else None

    def excess(epsilon: mpf) -> mpf:
        return delta_of(mu, epsilon) + (1 + exp(epsilon)) * slack - target

    if excess(mpf(0)) <= 0:
        return mpf(0)
    # delta_mu falls and the slack, 2^-100 or more if there is any, has passed any delta at 100.
    steps = [mpf(i) / 8 for i in range(800)] if slack else [mpf(2) ** i for i in range(40)]
    found = next((i for i, step in enumerate(steps) if excess(step) <= 0), None)
    if found is None:
        return None
    low, high = (steps[found - 1] if found else mpf(0)), steps[found]
    for _ in range(240):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def priced(mu: mpf, queries: int, target: mpf, slack: mpf) -> dict[str, object]:
    epsilon = least_epsilon(mu, target, slack)
    found: dict[str, object] = {
        "queries": queries,
        "mu": decimal(mu),
        "epsilon": None if epsilon is None else decimal(epsilon),
    }
    if epsilon is None:
        found["reason"] = "no epsilon solves the delta equation: there is no finite bound"
    return found


def renyi(rho: mpf, target: mpf, slack: mpf) -> dict[str, object]:
    millionth = target / 10**6
    goal = target - millionth

    def epsilon_at(order: mpf) -> mpf:
        inner = -log(goal) + (order - 1) * log(1 - 1 / order) - log(order)
        return max(mpf(0), rho * order + inner / (order - 1))

    low, high = mpf(10) ** -4, mpf(10) ** 4  # of the order less 1, in logarithms
    low, high = log(low), log(high)
    for _ in range(400):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if epsilon_at(1 + exp(left)) <= epsilon_at(1 + exp(right)):
            high = right
        else:
            low = left
    order = 1 + exp(high)  # where epsilon is 0 on an interval, its edge is above low
    epsilon = epsilon_at(order)
    covered = (1 + exp(epsilon)) * slack <= millionth
    return {
        "rho": decimal(rho),
        "epsilon": decimal(epsilon) if covered else None,
        "order_floor": decimal(order, up=False) if covered and epsilon else None,
        "label": "zero-concentrated DP of the discrete Gaussian; a guarantee of its own",
    }


def loss_distribution(mu: mpf, target: mpf, reference: mpf) -> dict[str, object]:
    """The epsilon of delta_mu joined by straight lines in e^epsilon, 4,000 points to a mu."""
    if not 0 < mu <= 20:
        return {"epsilon": None, "agrees": None, "reason": "mu is zero or too large for it"}
    width = mu / 4000
    found = mpf(0)
    if delta_of(mu, found) > target:
        low, high = 0, 1
        while delta_of(mu, high * width) > target:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if delta_of(mu, middle * width) > target else (low, middle)
            )  # fmt: skip
        first, last = delta_of(mu, low * width), delta_of(mu, high * width)
        share = (first - target) / (first - last)
        found = log(exp(low * width) + share * (exp(high * width) - exp(low * width)))
    apart = abs(found - reference) - reference / 1000 - mpf(1) / 2000
    if abs(apart) < BINARY:
        raise ArithmeticError("too close to tell")
    return {
        "epsilon": decimal(found, places=2, margin=BINARY),
        "agrees": bool(apart <= 0),
        "label": "dp-accounting, of the Gaussian limit; a cross-check",
    }


def closed(case: dict[str, object], sensitivity: mpf, units: mpf) -> dict[str, object]:
    label = "the paper's (5.2); a bound only for noise inside its class, and a loose one"
    loss, target_acc = number(case["epsilon_acc"]), number(case["delta_acc"])
    r, k = int(str(case["queries_per_account"])), int(str(case["coalition"]))
    eps_q = loss / sqrt(2 * r * -log(target_acc))
    none = {"leading": None, "residual": None, "total": None, "label": label}
    if eps_q >= 1:
        return {
            **none,
            "least_sigma_units": None,
            "in_class": False,
            "reason": "eps_q of (3.1) is not below 1: its class is empty",
        }
    least = sensitivity * sqrt(2 * log(mpf(5) / 4 * r / target_acc)) / eps_q
    found: dict[str, object] = {
        **none,
        "least_sigma_units": decimal(least),
        "in_class": bool(units >= least),
    }
    share = Fraction(str(case["delta_policy"])) - k * Fraction(str(case["delta_acc"]))
    if share <= 0:
        return {**found, "reason": "delta_policy does not exceed k delta_acc"}
    leading = loss * sqrt(k * log(number(share)) / log(target_acc))
    residual = k * r * eps_q * (exp(eps_q) - 1)
    return {
        **found,
        "leading": decimal(leading),
        "residual": decimal(residual),
        "total": decimal(leading + residual),
    }


def risk(mu: mpf, relation: str, slack: mpf) -> dict[str, object]:
    advantage = 1 - 2 * tail(mu / 2)
    between = mu if relation == "replace" else 2 * mu
    wider = 2 * slack * (1 if relation == "replace" else 2)

    def gap(low: mpf, high: mpf) -> mpf:
        """The largest 1 - f(alpha) - alpha for alpha in [low, high]."""
        peak = tail(between / 2)
        alpha = min(max(peak, low), high)
        if alpha == peak:
            return 1 - 2 * tail(between / 2)
        return mpf(0) if alpha in (0, 1) else tail(upper_quantile(alpha) - between) - alpha

    priors = []
    for count in (2, 10, 100):
        share = mpf(1) / count
        attribute = (1 - 2 * tail(between / 2)) * (1 - share)
        second = (1 - share) * gap(mpf(0), min(mpf(1), share / (1 - share)))
        reconstruction = min(gap(share, share), second, attribute)
        priors.append(
            {
                "candidates": count,
                "attribute": decimal(min(1 - share, attribute + wider)),
                "reconstruction": decimal(min(1 - share, reconstruction + wider)),
            }
        )
    return {
        "membership_advantage": decimal(min(mpf(1), advantage + 2 * slack)),
        "auc": decimal(min(mpf(1), 1 - tail(mu / sqrt(mpf(2))) + 2 * slack)),
        "uniform_priors": priors,
        "label": "upper limits for every attacker; reconstruction assumes no knowledge about "
        "the target beyond the prior, attribute allows any",
    }


def table(case: dict[str, object]) -> dict[str, object]:
    sigma, relation = str(case["sigma"]), str(case["relation"])
    g, r = int(str(case["group_size"])), int(str(case["queries_per_account"]))
    k, total = int(str(case["coalition"])), int(str(case["total_records"]))
    counts = sorted(case["realised_counts"], reverse=True)  # type: ignore[call-overload]
    units = Fraction(sigma) * UNIT
    squared = g * ((2 if relation == "replace" else 1) * UNIT) ** 2
    target, target_acc = number(case["delta_policy"]), number(case["delta_acc"])
    per_sample = mpf(g) / 2**100

    def mu(m: int) -> mpf:
        return sqrt(squared * m / number(units**2 - 16))

    m = k * r
    limit = sqrt(squared * m / number(units**2))
    limit_epsilon = least_epsilon(limit, target, mpf(0))
    assert limit_epsilon is not None
    account = least_epsilon(mu(r), target_acc, r * per_sample)
    headline = priced(mu(m), m, target, m * per_sample)
    realised = sum(counts[:k])
    exact = f"{units.numerator * 10**12 // units.denominator:013d}"
    return {
        "parameters": {
            "sigma": sigma,
            "sigma_units": (exact[:-12] + "." + exact[-12:]).rstrip("0").rstrip("."),
            "relation": relation,
            "group_size": g,
            "squared_sensitivity_units": squared,
            "queries_per_account": r,
            "coalition": k,
            "delta_policy": case["delta_policy"],
            "gamma": "2^-100",
        },
        "finite": headline["epsilon"] is not None,
        "headline": headline,
        "gaussian_limit": {
            "mu": decimal(limit),
            "epsilon": decimal(limit_epsilon),
            "label": "continuous Gaussian of the same parameter, ideal sampler; "
            "for comparison only",
        },
        "renyi": renyi(number(Fraction(squared * m) / (2 * units**2)), target, m * per_sample),
        "loss_distribution": loss_distribution(limit, target, limit_epsilon),
        "closed_form": closed(case, sqrt(mpf(squared)), number(units)),
        "per_account": {
            **priced(mu(r), r, target_acc, r * per_sample),
            "epsilon_acc": case["epsilon_acc"],
            "delta_acc": case["delta_acc"],
            "satisfied": account is not None and bool(account <= number(case["epsilon_acc"])),
        },
        "all_records": priced(mu(total), total, target, total * per_sample),
        "realised": {
            **priced(mu(realised), realised, target, realised * per_sample),
            "label": "from the counts of this window's log; not a guarantee",
        },
        "risk": risk(mu(m), relation, m * per_sample),
    }


BASE: dict[str, object] = {
    "sigma": "10",
    "relation": "replace",
    "group_size": 1,
    "queries_per_account": 50,
    "coalition": 10,
    "delta_policy": "0.00001",
    "total_records": 1234,
    "realised_counts": [50, 49, 3, 0, 17],
    "epsilon_acc": "8",
    "delta_acc": "0.000001",
}
CASES: list[dict[str, object]] = [
    BASE,
    {**BASE, "sigma": "126.5", "epsilon_acc": "1", "delta_policy": "0.0001"},
    {**BASE, "relation": "null-replace", "group_size": 7, "coalition": 3, "sigma": "40.25"},
    {**BASE, "sigma": "0.002", "queries_per_account": 3, "coalition": 2, "total_records": 6},
    {**BASE, "sigma": "900", "delta_policy": "0.3", "epsilon_acc": "0.1", "delta_acc": "0.01"},
    {**BASE, "total_records": 0, "realised_counts": [], "queries_per_account": 1, "coalition": 1},
]


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_epsilon.py, from docs/spec/07-coalition.md alone",
        "cases": [{"arguments": case, "table": table(case)} for case in CASES],
    }
    return {"epsilon.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
