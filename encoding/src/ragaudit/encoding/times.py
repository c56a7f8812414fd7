"""Times for people: RFC 3339 in UTC. On the wire, times are Unix seconds or milliseconds."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(milliseconds: int) -> str:
    """Return a time as ``2026-11-22T08:54:43Z``, with ``.123`` where milliseconds are left over.

    Args:
        milliseconds: since the Unix epoch, any integer; what lies outside the years 1 to 9999
            (a provider may log it) is given as a number, ``253402300800000 ms``.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    exact = milliseconds % 1000 != 0
    text = moment.isoformat(timespec="milliseconds" if exact else "seconds")
    return text.removesuffix("+00:00") + "Z"
