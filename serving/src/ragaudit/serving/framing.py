"""Where the requests of one connection begin and end, by RFC 9112 and nothing more.

Where a parser forgives (bare LF, two lengths, folded fields), a proxy may have read the same bytes
as other requests, and one caller's bytes become part of another's request (RFC 9112 §11.2). What is
passed on to the parser here has one reading; everything else is refused.
"""

import re
from collections.abc import Generator

from ragaudit.encoding.errors import MalformedError

__all__ = ["CHUNK_LINE_BYTES", "FIELDS", "HEAD_BYTES", "Framing"]

HEAD_BYTES = 16_384  # request line and fields; as many in a trailer section
FIELDS = 100  # of a head: the shortest takes thirty times its bytes of memory
CHUNK_LINE_BYTES = 1024  # size and extensions

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_FIELD = _TOKEN + rb":[\t -~\x80-\xff]*+\r\n"
# With the name of a user it would be no address that anybody may be sent; a tunnel has no path, and
# a fragment is for the client alone.
_AUTHORITY = rb"[0-9A-Za-z._~!$&'()*+,;=:%\[\]-]++"
_ABSOLUTE = rb"(?P<absolute>[Hh][Tt][Tt][Pp][Ss]?://(?P<host>" + _AUTHORITY + rb"))(?=[/? ])"
_PATH = rb"(?P<path>(?(absolute)|/)[!-\"$-~]*+)"
_HEAD = re.compile(
    rb"(?P<method>(?!CONNECT )" + _TOKEN + rb") (?:" + _ABSOLUTE + rb")?" + _PATH +
    rb" HTTP/1\.(?P<minor>[01])\r\n(?P<fields>(?:" + _FIELD + rb"){0,%d}+)\r\n" % FIELDS
)  # fmt: skip
_TRAILER = re.compile(rb"(?!content-length:|transfer-encoding:)" + _FIELD, re.IGNORECASE)
# Lengths and sizes are below 2^63, in every program that reads them.
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
_CODING = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[\t -~]*)?\r\n")
_HOST = re.compile(rb"^host:[^\r]*\r\n", re.IGNORECASE | re.MULTILINE)
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r]*", re.IGNORECASE)
_SPACE_BEHIND = re.compile(rb"[ \t]+\r\n")
# In no line, whatever follows: who speaks TLS or ends lines with LF need not wait for a deadline.
_NEVER = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f]|(?<!\r)\n")


class Framing:
    """The bytes of a connection, cut into heads and pieces of bodies.

    It holds what was added and not taken: once `piece` has returned None, at most a head.

    Attributes:
        in_body: whether what comes next is of a body, and no head.
    """

    def __init__(self) -> None:
        self.in_body = False
        self._held = bytearray()
        self._pieces = self._cut()

    def __bool__(self) -> bool:
        """Return whether bytes are held."""
        return bool(self._held)

    def add(self, data: bytes) -> None:
        """Hold more bytes.

        Args:
            data: that arrived next.
        """
        self._held += data

    def piece(self) -> bytes | None:
        """Return a whole head, or some more of a body; None until more bytes arrive.

        After an error nothing more can be taken.

        Raises:
            MalformedError: it is no request of HTTP/1.1 or 1.0, or has two readings.
        """
        return next(self._pieces)

    def _cut(self) -> Generator[bytes | None, None, None]:
        while True:
            head = _HEAD.fullmatch((yield from self._through(b"\r\n\r\n", HEAD_BYTES)))
            if head is None:
                raise MalformedError("not a request", where="head", expected="that of RFC 9112")
            length = _body_of(head)
            self.in_body = length != 0
            yield _for_parser(head)
            if length is None:
                yield from self._chunks()
            while length:
                piece = self._take(length)
                length -= len(piece)
                self.in_body = length > 0
                yield piece or None

    def _chunks(self) -> Generator[bytes | None, None, None]:
        size = None
        while size != 0:
            line = yield from self._through(b"\r\n", CHUNK_LINE_BYTES)
            found = _CHUNK_LINE.fullmatch(line)
            if found is None:
                raise MalformedError("not a chunk", where="body", expected="a size")
            size = int(found[1], 16)
            yield line
            left = size + 2 if size else 0  # with the end of its line
            while left:
                piece = self._take(left)
                left -= len(piece)
                yield piece or None
        room = HEAD_BYTES
        while (line := (yield from self._through(b"\r\n", room))) != b"\r\n":
            if _TRAILER.fullmatch(line) is None:
                raise MalformedError("not a trailer", where="body", expected="a field")
            room -= len(line)
        self.in_body = False
        yield line  # without the trailers, which llhttp would obey

    def _through(self, end: bytes, room: int) -> Generator[None, None, bytes]:
        """Take bytes up to an end and with it, of at most ``room`` bytes."""
        searched = 0
        while (found := self._held.find(end, searched, room)) < 0:
            if _NEVER.search(self._held, searched) or len(self._held) >= room:
                raise MalformedError(
                    "a line without end", where="request", expected=f"CR LF within {room} bytes"
                )
            searched = max(0, len(self._held) - len(end) + 1)
            yield None
        return self._take(found + len(end))

    def _take(self, count: int) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken


def _for_parser(head: re.Match[bytes]) -> bytes:
    """Return a head of one form, without what llhttp takes otherwise than the RFCs.

    An absolute target becomes path and `Host` (RFC 9112 §3.2.2). Spaces behind a value would be
    part of it (RFC 9110 §5.5). Behind an offer of another protocol, which a server may pass over
    (§7.8), no body would be read.
    """
    text = head[0]
    if head["absolute"]:
        slash = b"" if head["path"].startswith(b"/") else b"/"
        text = b"%b %b%b HTTP/1.%b\r\nHost: %b\r\n%b\r\n" % (
            head["method"], slash, head["path"], head["minor"], head["host"],
            _HOST.sub(b"", head["fields"]),
        )  # fmt: skip
    if b" \r\n" in text or b"\t\r\n" in text:
        text = _SPACE_BEHIND.sub(b"\r\n", text)
    return _UPGRADE.sub(b"", text)


def _body_of(head: re.Match[bytes]) -> int | None:
    """Return the length of the body behind a head, in bytes; None if it is in chunks."""
    named = head[0].lower()
    hosts = named.count(b"\r\nhost:")
    if hosts > 1 or (hosts == 0 and head["minor"] == b"1"):
        raise MalformedError(f"{hosts} hosts", where="Host", expected="one")
    lengths, codings = named.count(b"\r\ncontent-length:"), named.count(b"\r\ntransfer-encoding:")
    if lengths + codings > 1:
        raise MalformedError("two lengths", where="head", expected="one, or chunks")
    if codings:
        if head["minor"] == b"0" or _CODING.search(named) is None:
            raise MalformedError("unknown", where="Transfer-Encoding", expected="chunked")
        return None
    if lengths:
        counted = _LENGTH.search(named)
        if counted is None:
            raise MalformedError("no number", where="Content-Length", expected="decimal digits")
        return int(counted[1])
    return 0
