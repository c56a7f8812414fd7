"""The options of a client, and the objects made from them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import httpx
from ragaudit.client.offline import read_key
from ragaudit.client.transport import Service
from ragaudit.client.verifier import VerifierService
from ragaudit.client.window import Pins
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.options import digest as read_digest
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PrivateKey

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = [
    "ClientOptions",
    "anchored",
    "arbiter",
    "dispute_key",
    "pins",
    "provider",
    "state_root",
    "system_clock",
    "verifier",
]


class ClientOptions(TypedDict, total=False):
    """Options of a client; each may be left out.

    Attributes:
        window: its name; None for the only one that is being served.
        verifier_url: where claims, receipts and disputes go; an anchored account needs it.
        verifier_key: pin, the verifier's key (`keys.verifier`) in hexadecimal.
        policy_digest: pin, the digest of the policy in hexadecimal.
        allow_unpinned: go without a pin, and believe whoever answers; False by default.
        embedder: with it, embeddings are recomputed (check 9); it must be the committed one.
        state_dir: holds the account's keys, promises and receipts; keep it, never restore it.
        dispute_key: the account's, or the path of its file, where it was made before: the provider
            has its public half, and may have registered the account with it already.
        anchored: whether the account asks through a nonce chain. True demands it: a window without
            noise, where there is none, is refused. By default it does so where there are noise and
            a state_dir, which it needs.
        privacy: "required" refuses windows without noise, and those whose noise follows from a
            published seed. None by default: the window's policy says what it is.
        most_withheld: share of an answer's rows that may be withheld, 0..1; an answer that
            withholds more is refused. None by default: any share.
        timeout_seconds: of one call, retries and every byte of the reply included; 30 by default.
        transport, verifier_transport: httpx transports, for tests and proxies.
        clock: Unix milliseconds; this machine's by default.
    """

    window: str | None
    verifier_url: str | None
    verifier_key: str | None
    policy_digest: str | None
    allow_unpinned: bool
    embedder: "Embedder | None"
    state_dir: str | Path | None
    dispute_key: PrivateKey | str | Path | None
    anchored: bool | None
    privacy: Literal["required"] | None
    most_withheld: float | None
    timeout_seconds: float
    transport: httpx.AsyncBaseTransport | None
    verifier_transport: httpx.AsyncBaseTransport | None
    clock: Callable[[], int]


def system_clock() -> int:
    """Return this machine's time, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def pins(options: ClientOptions) -> Pins:
    """Return the pins of ``options``.

    Raises:
        MalformedError: not a key or a digest; or no pin, without ``allow_unpinned``.
    """
    key, digest = options.get("verifier_key"), options.get("policy_digest")
    pair = Pins(
        None if key is None else public_key(key, "verifier_key"),
        None if digest is None else read_digest(digest, "policy_digest"),
    )
    expected = "verifier_key= or policy_digest=, or allow_unpinned=True"
    return pair.demanded(expected, allow_unpinned=options.get("allow_unpinned", False))


def state_root(options: ClientOptions) -> Path | None:
    """Return the state directory of ``options``, None without one."""
    found = options.get("state_dir")
    return None if found is None else Path(found)


def dispute_key(options: ClientOptions) -> PrivateKey | None:
    """Return the dispute key of ``options``, None without one.

    Raises:
        MalformedError: a file that holds none.
        UnavailableError: a file that cannot be read.
    """
    given = options.get("dispute_key")
    return given if given is None or isinstance(given, PrivateKey) else read_key(Path(given))


def anchored(options: ClientOptions) -> bool:
    """Return whether the account is to have a nonce chain.

    Raises:
        MalformedError: one is asked for, and there is no state directory to keep it in.
    """
    chosen, has_state = options.get("anchored"), options.get("state_dir") is not None
    if chosen and not has_state:
        raise MalformedError("an anchored account keeps its chain", expected="state_dir=")
    # Anchored where that is possible: the audit says more about its queries.
    return has_state if chosen is None else chosen


def provider(options: ClientOptions, seconds: float, url: str, api_key: str) -> Service:
    """Return the calls of the provider at ``url``, each bounded by ``seconds``.

    Args:
        options: of the client.
        seconds: for a whole call.
        url: of the prover service.
        api_key: of the account.
    """
    headers = {"Authorization": f"Bearer {api_key}"}
    transport = options.get("transport")
    return Service(url, headers=headers, timeout_seconds=seconds, transport=transport)


def verifier(options: ClientOptions, seconds: float) -> VerifierService | None:
    """Return the verifier's calls, each bounded by ``seconds``; None if no address is given.

    Args:
        options: of the client.
        seconds: for a whole call.
    """
    if (url := options.get("verifier_url")) is None:
        return None
    transport = options.get("verifier_transport")
    return VerifierService(Service(url, timeout_seconds=seconds, transport=transport))


def arbiter(options: ClientOptions, seconds: float, url: str) -> Service:
    """Return the calls of the arbiter at ``url``, each bounded by ``seconds``; to be closed.

    Args:
        options: of the client.
        seconds: for a whole call.
        url: of the arbiter.
    """
    # Without the API key: the arbiter is given a receipt, and nothing to ask with.
    return Service(url, timeout_seconds=seconds, transport=options.get("verifier_transport"))
