"""Numbers for people: as many digits as a measurement deserves."""

__all__ = ["digits", "duration"]


def digits(value: float) -> str:
    """Return a number with three digits, or with all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def duration(seconds: float) -> str:
    """Return a time in seconds, in milliseconds below one, in microseconds below one of those."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds * 1e6)} µs"
