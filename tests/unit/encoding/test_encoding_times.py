"""Times that people read: RFC 3339, UTC, for every integer."""

from __future__ import annotations

from datetime import UTC, datetime

from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.text import rfc3339


@for_each(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_700_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_010, "2023-11-14T22:13:20.010Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000 ms"),
        (-62_135_596_800_000, "0001-01-01T00:00:00Z"),
        (-62_135_596_800_001, "-62135596800001 ms"),
        (2**63 - 1, "9223372036854775807 ms"),
        (-(2**63), "-9223372036854775808 ms"),
    ],
)
def test_known_times(milliseconds: int, text: str) -> None:
    assert rfc3339(milliseconds) == text


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_nothing_is_lost(milliseconds: int) -> None:
    read = datetime.fromisoformat(rfc3339(milliseconds).replace("Z", "+00:00"))
    since = read - datetime(1970, 1, 1, tzinfo=UTC)
    assert since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000 == (
        milliseconds
    )
