"""The auditor's download of a bundle, which goes on where it broke off (spec 8.3)."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, BinaryIO, Self

import httpx
from ragaudit.encoding.errors import MalformedError, UnavailableError

__all__ = ["BundleChanged", "Opened", "ServiceAway", "go_on", "receive"]

_TRIES = 6  # in a row that bring nothing
_WAIT_SECONDS = 0.2
_PLACE = re.compile(r"/v1/windows/[^/?]+/bundle/confidential/([0-9]{1,10})(\?.*)?", re.ASCII)
_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})", re.ASCII)
_TAG = re.compile(r'"[0-9a-f]{64}"', re.ASCII)


class ServiceAway(UnavailableError):
    """The service does not answer, or cannot now."""


class BundleChanged(UnavailableError):
    """What is left is of another bundle: evidence is gone, or differs."""


@dataclass(frozen=True)
class Opened:
    """A download that was begun.

    Attributes:
        number: of the evidence access that was recorded for it.
        tag: the bundle's, as in the header `ETag`.
        size: of the whole bundle, bytes.
    """

    number: int
    tag: str
    size: int

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Return what the answer's headers say.

        Raises:
            MalformedError: they do not say it.
        """
        place = _PLACE.fullmatch(headers.get("content-location", ""))
        size = headers.get("content-length", "")
        tag = headers.get("etag", "")
        if place is None or not size.isdecimal() or _TAG.fullmatch(tag) is None:
            raise MalformedError("not a download that can be resumed", where="headers")
        return cls(int(place[1]), tag, int(size))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return what `encode` wrote; MalformedError for anything else."""
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        match value:
            case {"number": int(number), "tag": str(tag), "size": int(size)} if len(value) == 3:
                return cls(number, tag, size)
        raise MalformedError("not the note of a download", expected="what this command wrote")

    def encode(self) -> str:
        """Return it as JSON, for a later process."""
        return json.dumps(asdict(self))


def go_on(
    request: Callable[[Mapping[str, str]], Any], opened: Opened, file: BinaryIO, where: str
) -> None:
    """Receive what is missing; an interruption is followed by another request for the rest.

    Args:
        request: with headers, opens the stream of what there is from a byte on.
        opened: of the first request.
        file: holds the bundle's beginning; what is missing is written behind it.
        where: for errors.

    Raises:
        ServiceAway: several requests in a row brought nothing. The file keeps what there is.
        BundleChanged: the rest is of another bundle.
    """
    idle, reason = 0, "no answer"
    while (have := file.seek(0, 2)) < opened.size:
        if idle == _TRIES:
            raise ServiceAway(
                f"the download broke off at byte {have} of {opened.size}: {reason}",
                where=where, expected="the same command again, which goes on from there",
            )  # fmt: skip
        if idle:
            time.sleep(_WAIT_SECONDS * 2**idle)
        try:
            with request({"Range": f"bytes={have}-", "If-Range": opened.tag}) as answer:
                if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    reason = f"status {answer.status_code}"
                else:
                    _check_rest(answer, opened, have, where)
                    receive(answer, file)
        except httpx.HTTPError as error:
            reason = type(error).__name__
        idle = 0 if file.seek(0, 2) > have else idle + 1


def receive(answer: httpx.Response, file: BinaryIO) -> None:
    """Write the answer's body behind what the file holds; what arrived stays if it breaks off."""
    for piece in answer.iter_bytes():
        file.write(piece)


def _check_rest(answer: httpx.Response, opened: Opened, have: int, where: str) -> None:
    found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    whole = answer.status_code == HTTPStatus.OK and have == 0
    rest = answer.status_code == HTTPStatus.PARTIAL_CONTENT and found is not None
    if rest and found is not None:
        rest = (int(found[1]), int(found[2])) == (have, opened.size)
    if not (whole or rest) or answer.headers.get("etag") != opened.tag:
        raise BundleChanged(
            f"the rest from byte {have} on is not to be had (status {answer.status_code})",
            where=where, expected="the bundle to be opened anew",
        )  # fmt: skip
