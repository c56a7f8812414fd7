"""How many records to check, and what an undetected share means (spec 7.3, 9.1)."""

from fractions import Fraction

from ragaudit.privacy.numbers import Number, count, exact

__all__ = ["bad_records", "detection", "miss_probability", "sample_size", "sample_size_unbounded"]

# (1 - beta)^s is computed in whole numbers of this many bits, rounded up.
_BITS = 256
_LEAST_SHARE = Fraction(1, 10**12)


def bad_records(population: int, beta: Number) -> int:
    """Return ``ceil(beta · population)``, the bad records that a share beta amounts to.

    Args:
        population: n, >= 0.
        beta: in [10^-12, 1).

    Raises:
        InvalidArgumentError: a value out of range.
    """
    n, share = count(population, "population", least=0), _share(beta, "beta")
    return -(-n * share.numerator // share.denominator)


def miss_probability(population: int, bad: int, sample: int) -> Fraction:
    """Return exactly ``C(n - b, s) / C(n, s)``: a sample without replacement has no bad one.

    Args:
        population: n, records in all.
        bad: b of them.
        sample: s, drawn records.

    Raises:
        InvalidArgumentError: not 0 <= b, s <= n.
    """
    count(population, "population", least=0)
    count(bad, "bad", least=0, most=population)
    count(sample, "sample", least=0, most=population)
    if bad + sample > population:
        return Fraction(0)
    # The product has min(b, s) factors: C(n-b, s)/C(n, s) is symmetric in b and s.
    few, many = sorted((bad, sample))
    numerator = denominator = 1
    for i in range(few):
        numerator *= population - many - i
        denominator *= population - i
    return Fraction(numerator, denominator)


def sample_size(population: int, beta: Number, eta: Number) -> int:
    """Return the least s for which ``ceil(beta·n)`` bad records are missed with <= eta.

    Exact in integers; the whole population when only that suffices.

    Args:
        population: n, >= 0.
        beta: share of bad records, in [10^-12, 1).
        eta: largest probability to miss all of them, in [10^-12, 1).

    Raises:
        InvalidArgumentError: population < 0, or beta or eta outside (0, 1).
    """
    risk, bad = _share(eta, "eta"), bad_records(population, beta)
    if population == 0:
        return 0
    # At the first bound some bad record is in the sample; the second suffices even with
    # replacement, because there are at least beta·n bad records.
    low, high = 0, min(population - bad + 1, sample_size_unbounded(beta, risk))
    while low < high:
        middle = (low + high) // 2
        if _missed_at_most(population, bad, middle, risk):
            high = middle
        else:
            low = middle + 1
    return low


def sample_size_unbounded(beta: Number, eta: Number) -> int:
    """Return the least s with ``(1 - beta)^s <= eta``: sampling with replacement.

    Args:
        beta, eta: as for :func:`sample_size`.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    good, risk = 1 - _share(beta, "beta"), _share(eta, "eta")
    high = 1
    while not _power_at_most(good, high, risk):
        high *= 2
    low = high // 2
    while low < high:
        middle = (low + high) // 2
        if _power_at_most(good, middle, risk):
            high = middle
        else:
            low = middle + 1
    return low


def detection(beta: Number, sample: int) -> Fraction:
    """Return a lower bound, tight to 2^-200, of ``1 - (1 - beta)^s``.

    Args:
        beta: share of bad records, between 0 and 1.
        sample: s, >= 0.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    good = 1 - exact(beta, "beta", above=0, below=1)
    return 1 - Fraction(_power_up(good, count(sample, "sample", least=0)), 1 << _BITS)


def _share(value: Number, where: str) -> Fraction:
    """Return a policy's share: it has at most 12 places, and smaller ones are beyond 256 bits."""
    return exact(value, where, least=_LEAST_SHARE, below=1)


def _missed_at_most(population: int, bad: int, sample: int, eta: Fraction) -> bool:
    """Decide ``C(n-b, s)/C(n, s) <= eta``: by intervals, exactly only when they do not settle."""
    if bad + sample > population:
        return True
    few, many = sorted((bad, sample))
    low = high = 1 << _BITS
    for i in range(few):
        numerator, denominator = population - many - i, population - i
        low = low * numerator // denominator
        high = -(-high * numerator // denominator)
    scaled = Fraction(eta.numerator << _BITS, eta.denominator)
    if high <= scaled:
        return True
    if low > scaled:
        return False
    return miss_probability(population, bad, sample) <= eta


def _power_at_most(base: Fraction, exponent: int, eta: Fraction) -> bool:
    """Decide ``base^exponent <= eta`` for exponents small enough to be computed exactly."""
    high = Fraction(_power_up(base, exponent), 1 << _BITS)
    if high <= eta:
        return True
    # 2^-200 above eta is far beyond the rounding of at most 2·64 multiplications.
    if high > eta + Fraction(1, 1 << (_BITS - 40)):
        return False
    return base**exponent <= eta


def _power_up(base: Fraction, exponent: int) -> int:
    """Return an upper bound of ``base^exponent`` in units of 2^-_BITS, for 0 <= base <= 1."""
    result = 1 << _BITS
    square = -(-(base.numerator << _BITS) // base.denominator)
    while exponent:
        if exponent & 1:
            result = -((-result * square) >> _BITS)
        square = -((-square * square) >> _BITS)
        exponent >>= 1
    return result
