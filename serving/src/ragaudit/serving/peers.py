"""Who sent a request: the peer of its connection, or whom a trusted proxy names.

``X-Forwarded-For`` is anybody's text, so it counts only from a proxy that the settings name, and
only as far as such proxies wrote it.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated

from pydantic import AfterValidator
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BehindProxies", "ProxyNetwork", "peer_of"]

Network = IPv4Network | IPv6Network
_SCHEMES = {b"http": "http", b"https": "https"}


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError:
        raise ValueError("not a network; expected one such as 127.0.0.1/32 or fd00::/8") from None
    return text


ProxyNetwork = Annotated[str, AfterValidator(_network)]
"""A network of proxies in CIDR notation, no bit set behind its prefix."""


class BehindProxies:
    """ASGI application: another one, whose requests have the peer that trusted proxies name.

    Args:
        trusted: networks of proxies; without any the peer is always that of the connection.
    """

    def __init__(self, app: ASGIApp, trusted: Iterable[str]) -> None:
        self._app = app
        self._trusted = [ip_network(each) for each in trusted]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its peer, and the scheme by which the proxy was asked."""
        client = scope.get("client") if self._trusted and scope["type"] == "http" else None
        if client and _is_trusted(_address(client[0]), self._trusted):
            found = peer_of(client[0], _values(scope, b"x-forwarded-for"), self._trusted)
            schemes = _values(scope, b"x-forwarded-proto")
            scheme = _SCHEMES.get(schemes[-1] if schemes else b"", scope["scheme"])
            scope = {**scope, "client": (found, 0), "scheme": scheme}
        await self._app(scope, receive, send)


def peer_of(peer: str, forwarded: Sequence[bytes], trusted: Sequence[Network]) -> str:
    """Return the address of whoever sent a request, as text.

    Args:
        peer: of the connection.
        forwarded: for whom each proxy on the way says that it forwards, the nearest last.
        trusted: networks whose word is taken.
    """
    found = peer
    for text in reversed(forwarded):
        if not _is_trusted(_address(found), trusted):
            break
        # What is no address ends it: nobody's text stands in the place of a peer.
        address = _address(text.decode("latin-1"))
        if address is None:
            break
        found = str(address)
    return found


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    """Return the members of a list in a header, of all its lines."""
    lines = [value for name, value in scope["headers"] if name == wanted]
    return [each.strip() for line in lines for each in line.split(b",")]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    if "%" in text:  # a zone may be any text
        return None
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _is_trusted(address: IPv4Address | IPv6Address | None, trusted: Sequence[Network]) -> bool:
    return address is not None and any(address in network for network in trusted)
