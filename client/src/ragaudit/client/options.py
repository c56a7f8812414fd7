"""The options of a client, what they pin and what they demand."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypedDict

import httpx
from ragaudit.client.errors import LessThanDemanded
from ragaudit.client.state import read_key
from ragaudit.client.window import Pins, Window
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.options import digest as read_digest
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.policy_terms import time_to_hand_in

if TYPE_CHECKING:
    from ragaudit.client.results import SearchResult
    from ragaudit.embedders.base import Embedder

__all__ = ["ClientOptions", "Demands", "anchored", "dispute_key", "pins", "system_clock"]

REQUIRED: Final = "required"
_log = logging.getLogger(__name__)


class ClientOptions(TypedDict, total=False):
    """Options of a client; each may be left out.

    Attributes:
        window: its name; None for the only one that is being served.
        verifier_url: where claims, receipts and disputes go; an anchored account needs it.
        verifier_key: pin, the verifier's key (`keys.verifier`) in hexadecimal.
        policy_digest: pin, the digest of the policy in hexadecimal.
        allow_unpinned: go without a pin, and trust whichever server answers; False by default.
        embedder: with it, embeddings are recomputed (check 9); it must be the committed one.
        state_dir: holds the account's keys, promises and receipts; keep it, never restore it.
        dispute_key: the account's, or the path of its file, where it was made before: the provider
            has its public key, and may have registered the account with it already.
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


@dataclass(frozen=True, slots=True)
class Demands:
    """What a caller demands of a window and of its answers (docs/spec 8.10); nothing by default.

    A provider decides which window it serves and which rows it gives out. Whoever demanded more
    than that gets an error, never the lesser thing without a word.

    Attributes:
        privacy: noise that nobody can predict.
        anchored: a nonce of the account in the noise of its answers.
        most_withheld: share of an answer's rows that may be withheld, 0..1; None: any.
    """

    privacy: bool = False
    anchored: bool = False
    most_withheld: Fraction | None = None

    @classmethod
    def of(cls, options: ClientOptions) -> Self:
        """Return the demands of a client's options.

        Raises:
            MalformedError: a value that demands nothing known.
        """
        privacy, most = options.get("privacy"), options.get("most_withheld")
        if privacy not in (None, REQUIRED):
            raise MalformedError(f"{privacy!r}", where="privacy", expected=f"{REQUIRED!r} or None")
        # Not isinstance: True would allow everything, and NaN would refuse nothing.
        if most is not None and not (type(most) in (int, float) and 0 <= most <= 1):
            raise MalformedError(f"{most!r}", where="most_withheld", expected="0..1")
        share = None if most is None else Fraction(most)
        return cls(privacy == REQUIRED, options.get("anchored") is True, share)

    def check_window(self, window: Window) -> None:
        """Check that a window can give what is demanded; warn of one that leaves no time.

        Raises:
            LessThanDemanded: it adds no noise, or noise from a published seed.
        """
        policy = window.view.policy
        if self.privacy and not policy.noised:
            raise LessThanDemanded(
                "this window adds no noise, and privacy is required",
                where=window.name,
                expected="a window with noise",
            )
        if self.privacy and policy.experiment_seed is not None:
            raise LessThanDemanded(
                "the noise of this window follows from a published seed, and privacy is required",
                where=window.name,
                expected="a window whose policy has no experiment_seed",
            )
        # Nothing is drawn there that a chain could keep the provider from drawing again.
        if self.anchored and not policy.noised:
            raise LessThanDemanded(
                "this window adds no noise, so no answer in it is anchored",
                where=window.name,
                expected="a window with noise, or no demand for anchored=True",
            )
        seconds = policy.sampling_instant - policy.end
        needed = time_to_hand_in(policy.merge_delay_seconds, policy.clock_skew_seconds)
        if seconds < needed:
            _log.warning(
                "window %s: the sample is drawn %d s after its end; handing in the receipts of the "
                "last answers needs %d s. An answer that is in no log may stay unnoticed",
                policy.window, seconds, needed,
            )  # fmt: skip

    def check_answer(self, result: "SearchResult[Any]") -> None:
        """Check that an answer withholds no more than is allowed.

        Raises:
            LessThanDemanded: it withholds more; the answer is in it.
        """
        if self.most_withheld is None:
            return
        rows = result.withheld + len(result.documents)
        if result.withheld > self.most_withheld * rows:
            raise LessThanDemanded(
                f"{result.withheld} of {rows} rows are withheld",
                where=f"answer {result.receipt.counter}",
                expected=f"a share of at most {float(self.most_withheld):g}",
                result=result,
            )
