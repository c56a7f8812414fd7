"""Downloads that go on where they broke off: ranges to the end (RFC 9110 §14, §13.1.5)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response, StreamingResponse

__all__ = ["Resumable", "resumable"]

_TO_THE_END = re.compile(r"bytes=([0-9]{1,15})-", re.ASCII)


@dataclass(frozen=True)
class Resumable:
    """A representation whose bytes never change.

    Attributes:
        size: of the whole, bytes.
        tag: that no other bytes have; hexadecimal.
        pieces: yields its bytes, all but so many at the beginning.
    """

    size: int
    tag: str
    pieces: Callable[[int], Iterator[bytes]]


def resumable(
    whole: Resumable, asked: Mapping[str, str], media_type: str, headers: Mapping[str, str]
) -> Response:
    """Return the whole, or the rest that a request asks for.

    A range has one form, from a byte to the end; any other is passed over, as RFC 9110 allows,
    and so is one of another representation (`If-Range`).

    Args:
        whole: what there is.
        asked: the request's headers.
        media_type: of the whole.
        headers: of the answer, beside those of the range.
    """
    tag = f'"{whole.tag}"'
    found = _TO_THE_END.fullmatch(asked.get("range", ""))
    start = int(found[1]) if found and asked.get("if-range", tag) == tag else 0
    given = {**headers, "Accept-Ranges": "bytes", "ETag": tag}
    if start >= whole.size:
        given["Content-Range"] = f"bytes */{whole.size}"
        return Response(status_code=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=given)
    given["Content-Length"] = str(whole.size - start)
    if start:
        given["Content-Range"] = f"bytes {start}-{whole.size - 1}/{whole.size}"
    status = HTTPStatus.PARTIAL_CONTENT if start else HTTPStatus.OK
    return StreamingResponse(
        whole.pieces(start), status_code=status, media_type=media_type, headers=given
    )
