"""Lines of what is held of an account: read as they were written, and nothing else is."""

from itertools import islice, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.accounts import (
    KINDS,
    PROVIDER,
    VERIFIER,
    AccountRecords,
    Line,
    read_lines,
)

HEAD = AccountRecords(VERIFIER, "p.example", "w1", bytes(32))
FOUND = [Line("entry", {"index": 1}), Line("opened", {"index": 1}), Line("item", {"name": "n"})]
WHOLE = list(HEAD.lines(FOUND))


@given(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 9)), max_size=9))
def test_lines_are_read_as_they_were_written(said: list[tuple[str, int]]) -> None:
    found = [Line(kind, {"n": value}) for kind, value in said]
    other = AccountRecords(PROVIDER, "p.example", "w2", b"\1" * 32)
    written = [*HEAD.lines(found), *other.lines([])]
    assert list(read_lines(written)) == [HEAD, *found, other]


def test_a_text_with_other_ends_of_lines_is_one_line() -> None:
    found = Line("opened", {"text": "a\u2028b\u0085c\x0bd"})
    data = b"".join(HEAD.lines([found]))
    assert list(read_lines(data.splitlines(keepends=True)))[1:] == [found]


def test_they_are_written_one_at_a_time() -> None:
    endless = HEAD.lines(repeat(FOUND[0]))
    assert len(list(islice(endless, 1000))) == 1000


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        pytest.param([], "cut off", id="none"),
        pytest.param(WHOLE[:-1], "cut off", id="without the end"),
        pytest.param([*WHOLE, WHOLE[0]], "cut off", id="a second window without its end"),
        pytest.param([*WHOLE[:2], *WHOLE[3:]], "no such line", id="one taken out"),
        pytest.param([*WHOLE[:2], *WHOLE[1:]], "no such line", id="one twice"),
        pytest.param([*WHOLE, WHOLE[1]], "unknown member|missing", id="one after the end"),
        pytest.param(WHOLE[1:], "unknown member|missing", id="without the head"),
        pytest.param([*WHOLE[:-1], b'{"end":true}\n'], "no such line", id="true for three"),
        pytest.param([*WHOLE[:2], b'{"end":true}\n'], "no such line", id="true for one"),
        pytest.param([WHOLE[0], b'{"key":1}\n'], "no such line", id="another kind"),
        pytest.param([WHOLE[0], b'{"entry":1,"opened":1}\n'], "no such line", id="two of them"),
        pytest.param([WHOLE[0], b"{}\n"], "no such line", id="nothing said"),
        pytest.param([WHOLE[0], b"[]\n"], "not an object", id="no object"),
        pytest.param([WHOLE[0], WHOLE[1][:-1]], "does not end", id="half a line"),
        pytest.param([WHOLE[0], b'{"entry": 1}\n'], "canonical", id="another spelling"),
        pytest.param([WHOLE[0].replace(b"verifier", b"somebody")], "holder", id="another holder"),
    ],
)
def test_other_lines_are_refused(lines: list[bytes], what: str) -> None:
    with pytest.raises(MalformedError, match=what):
        list(read_lines(lines))
