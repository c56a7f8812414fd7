"""One account in one window: what it demands, the registration, the nonce chain."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypedDict, TypeVar

import httpx
from ragaudit.client.errors import (
    AnswerRejected,
    LessThanDemanded,
    ProviderRefusal,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.client.results import SearchResult, channel_of
from ragaudit.client.state import AccountKeys, StateDirectory, read_key
from ragaudit.client.transport import Service
from ragaudit.client.verifier import Holder, VerifierService
from ragaudit.client.window import (
    SERVED,
    AccountState,
    Pins,
    Window,
    authenticate,
    check_activated,
    check_entry,
    check_mine,
    parsed,
)
from ragaudit.encoding.errors import InternalError, MalformedError, UnavailableError
from ragaudit.encoding.options import digest as read_digest
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.chains import NonceChain, activation_of
from ragaudit.ledger.messages.entries import QueryEntry
from ragaudit.ledger.messages.policy_terms import time_to_hand_in
from ragaudit.ledger.messages.receipts import AnyFile
from ragaudit.ledger.messages.shown import ShownWindow, WindowList

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

T = TypeVar("T")

__all__ = ["POLL_SECONDS", "ClientOptions", "Demands", "Session", "system_clock"]

POLL_SECONDS = 0.25
_REGISTRATION_SECONDS = 30.0
_REQUIRED: Final = "required"
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
        if privacy not in (None, _REQUIRED):
            raise MalformedError(f"{privacy!r}", where="privacy", expected=f"{_REQUIRED!r} or None")
        # Not isinstance: True would allow everything, and NaN would refuse nothing.
        if most is not None and not (type(most) in (int, float) and 0 <= most <= 1):
            raise MalformedError(f"{most!r}", where="most_withheld", expected="0..1")
        share = None if most is None else Fraction(most)
        return cls(privacy == _REQUIRED, options.get("anchored") is True, share)

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

    def check_answer(self, result: SearchResult[Any]) -> None:
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


class Session:
    """What a client knows and keeps between its queries.

    Attributes:
        provider: calls with the account's API key.
        verifier: calls to the verifier, or None.
        other_service: makes the calls of another service than the provider's, of an address.
        clock: Unix milliseconds.
        timeout_seconds: of one call.
        embedder: recomputes embeddings, or None.
        anchored: whether the account is to have a nonce chain.
        state: durable state of the account, None before registration and without a directory.
        keys: the account's secrets in it.
        chain: the nonce chain of an anchored account.
        began_chain: whether this session drew the chain's seed.
        window: the window, once `opened`.
        registered: the account, once `ready`.
        demands: of the caller.
        last_counter: of a plain account's last query.
        answers: identities of a plain account's receipts, by counter.
    """

    def __init__(self, base_url: str, api_key: str, options: ClientOptions) -> None:
        """Connect nowhere yet.

        Args:
            base_url: of the provider's prover service.
            api_key: the account's.
            options: of the client.

        Raises:
            MalformedError: not an address, a key, a digest or a demand.
        """
        self.demands = Demands.of(options)
        key, digest = options.get("verifier_key"), options.get("policy_digest")
        self._pins = Pins(
            None if key is None else public_key(key, "verifier_key"),
            None if digest is None else read_digest(digest, "policy_digest"),
        ).demanded(
            "verifier_key= or policy_digest=, or allow_unpinned=True",
            allow_unpinned=options.get("allow_unpinned", False),
        )
        given = options.get("dispute_key")
        self._dispute_key = (
            given if given is None or isinstance(given, PrivateKey) else read_key(Path(given))
        )
        chosen, root = options.get("anchored"), options.get("state_dir")
        if chosen and root is None:
            raise MalformedError("an anchored account keeps its chain", expected="state_dir=")
        # Anchored where that is possible: the audit says more about its queries.
        self.anchored = root is not None if chosen is None else chosen
        self._state_root = None if root is None else Path(root)
        self._wanted = options.get("window")
        self.embedder = options.get("embedder")
        self.clock = options.get("clock", system_clock)
        self.timeout_seconds = options.get("timeout_seconds", 30.0)
        self.provider = Service(
            base_url, api_key=api_key,
            timeout_seconds=self.timeout_seconds, transport=options.get("transport"),
        )  # fmt: skip
        # Without the API key: verifier and arbiter are given receipts, and nothing to ask with.
        self.other_service = partial(
            Service, timeout_seconds=self.timeout_seconds,
            transport=options.get("verifier_transport"),
        )  # fmt: skip
        url = options.get("verifier_url")
        self.verifier = None if url is None else VerifierService(self.other_service(url))
        self.state: StateDirectory | None = None
        self.keys: AccountKeys | None = None
        self.chain: NonceChain | None = None
        self.began_chain = False
        self.last_counter: int | None = None
        self.answers: dict[int, bytes] = {}
        self._window: Window | None = None
        self._account: AccountState | None = None
        self._checked = False

    async def aclose(self) -> None:
        """Close the connections and release the state directory."""
        await self.provider.aclose()
        if self.verifier is not None:
            await self.verifier.aclose()
        if self.state is not None:
            self.state.close()
            self.state = None

    @property
    def window(self) -> Window:
        """Return the window, once `opened`."""
        assert self._window is not None
        return self._window

    @property
    def registered(self) -> AccountState:
        """Return the account, once `ready`."""
        assert self._account is not None
        return self._account

    @property
    def known(self) -> AccountState | None:
        """The account, if it has registered or was found registered before."""
        return self._account

    async def signer(self) -> Holder | None:
        """Return `holder`; None where the account has no dispute key, neither given nor kept."""
        signs = self._state_root is not None or self._dispute_key is not None
        return await self.holder() if signs else None

    async def holder(self) -> Holder:
        """Return the account with its dispute key; it is registered if it was not.

        The registration is the one that was checked and kept before the account asked: what the
        provider shows of it later keeps nothing from the verifier.

        Raises:
            StateConflict: the account has no dispute key.
        """
        account = await self.register()
        if self.keys is None:
            raise StateConflict(
                "this client has no dispute key",
                expected="dispute_key= of the account, or state_dir=",
            )
        # From the disk: a provider that withholds the proof now cannot take this one back.
        kept = None if self.state is None else await asyncio.to_thread(self.state.registration)
        return Holder(self.keys.dispute_key, account, kept or account.registration)

    async def opened(self) -> Window:
        """Return the window, its countersignature checked; fetched once.

        Raises:
            StateConflict: not countersigned, or several windows are served and none was named.
            LessThanDemanded: it gives less than the client's options demand.
            AnswerRejected: as `authenticate`.
        """
        if self._window is None:
            window = await self._fetch_window()
            self.demands.check_window(window)
            # Nothing is drawn there that a chain could keep the provider from drawing again.
            self.anchored = self.anchored and window.view.policy.noised
            # From here on it is this one, whatever else is served later.
            self._window, self._wanted = window, window.name
        return self._window

    async def _fetch_again(self) -> None:
        window = await self._fetch_window()
        # What was demanded, and what the account's keys are for, was looked at under this policy.
        if window.view.policy.digest != self.window.view.policy.digest:
            raise AnswerRejected("another policy than before", where=window.name)
        self._window = window

    async def follow(self, entry: QueryEntry) -> None:
        """Fetch the window again if an entry names a version that nothing activates here yet.

        Args:
            entry: of an answer or a promise, not checked yet; its version is compared later, with
                what is in force by then.

        Raises:
            AnswerRejected: as `authenticate`.
        """
        if entry.version == 1:
            return
        # An entry that was shown before its instant counts from there on only.
        versions = self.window.view.schedule.versions
        known = [each.index for each in versions if each.activation is not None]
        if (entry.tenant, entry.version) not in [(it.tenant, it.version) for it in known]:
            await self._fetch_again()

    def asked_before(self, counter: int) -> bool:
        """Return whether a plain account's counter is not above that of its last answer."""
        return self.last_counter is not None and counter <= self.last_counter

    def plain_counter(self, counter: int) -> int:
        """Take the counter of a plain account's answer; return how many queries were missed.

        Raises:
            AnswerRejected: it came before.
        """
        # The log holds a counter once: one of the two answers is of no query.
        if self.asked_before(counter):
            raise AnswerRejected(f"counter {counter} again", expected=f"above {self.last_counter}")
        missed = 0 if self.last_counter is None else counter - self.last_counter - 1
        self.last_counter = counter
        return missed

    async def had(self, file: AnyFile) -> bool:
        """Return whether a plain account's receipt was accepted before, as far as is known here.

        Args:
            file: with or without proofs, which nobody signed.
        """
        counter, path = file.public.query.counter, self.kept_at(file)
        if counter not in self.answers and path is not None:
            with suppress(FileNotFoundError, MalformedError):
                kept = type(file).parse(await asyncio.to_thread(path.read_bytes))
                self.answers[counter] = kept.public.identity
        return self.answers.get(counter) == file.public.identity

    def kept_at(self, file: AnyFile) -> Path | None:
        """Return where a receipt is kept, or would be; None without a state directory."""
        if self.state is None:
            return None
        return self.state.path_of(file.public.query.counter, channel_of(file).folder)

    async def keep(self, file: AnyFile) -> Path | None:
        """Make a receipt durable; return where it is, None without a state directory."""
        counter = file.public.query.counter
        self.answers[counter] = file.public.identity
        if self.state is None:
            return None
        keep = partial(self.state.keep_receipt, folder=channel_of(file).folder)
        return await asyncio.to_thread(keep, counter, file.encode())

    async def timed(self, check: Callable[[], T]) -> T:
        """Run a check. A time that does not fit is no lie where this machine's clock is off.

        Raises:
            StateConflict: this clock differs from the verifier's, too.
        """
        try:
            return await asyncio.to_thread(check)
        except AnswerRejected as error:
            if error.where.endswith("time") and self.verifier is not None:
                with suppress(UnavailableError, InternalError, ProviderRefusal):
                    await self.check_verifier()
            raise

    def path(self, rest: str) -> str:
        """Return the path of a call in this window.

        Args:
            rest: below the window's own path, without a leading slash.
        """
        return f"/v1/windows/{self.window.name}/{rest}"

    async def account(self) -> AccountState:
        """Return the account as the provider shows it now.

        Raises:
            AnswerRejected: not an account.
        """
        await self.opened()
        return parsed(AccountState.from_json, await self.provider.get(self.path("account")))

    async def register(self) -> AccountState:
        """Register once and return the account.

        An account's secrets are durable before their public parts are sent.

        Raises:
            StateConflict: registered before with another chain or key, or as the other kind.
            AnswerRejected: the provider has not registered it after all.
        """
        if self._account is not None:
            return self._account
        account = await self.account()
        if self.anchored:  # before a chain exists: its claims would go nowhere without it
            await self.check_verifier()
        # Durable before they are sent: a lost dispute key could not be registered again.
        await asyncio.to_thread(self._prepare_keys, account)
        anchor = None if self.chain is None else self.chain.anchor
        key = None if self.keys is None else self.keys.dispute_key.public.raw
        if account.slot is None:
            # Repeatable: the same values again get the same registration (spec 8.6).
            halves = {"anchor": anchor, "dispute_key": key}
            body = {name: half and half.hex() for name, half in halves.items()}
            await self.provider.post(self.path("registration"), body, repeatable=True)
            account = await self.account()
        if account.slot is None:
            raise AnswerRejected("the account is not registered after all", where=self.window.name)
        check_mine(account, anchor, key, self.window.name)
        self._account = account
        return account

    async def ready(self) -> AccountState:
        """Return the account, registered, included in the log and activated; checked once.

        Raises:
            StateConflict: not activated yet, another embedder, or a counter that the state
                directory does not have.
            AnswerRejected: the registration is false.
            ServiceUnreachable: no inclusion proof of it in time.
        """
        account = await self.register()
        if not self._checked:
            self._check_embedder()
            self._account = account = await self._included(account)
            if self.state is not None and self.chain is not None:
                self._check_counter(self.state, account)
            self._checked = True
        return account

    def known_verifier(self) -> VerifierService:
        """Return the verifier.

        Raises:
            StateConflict: none is known.
        """
        if self.verifier is None:
            raise StateConflict("this client knows no verifier", expected="verifier_url=")
        return self.verifier

    async def check_verifier(self) -> None:
        """Check that the verifier is the policy's, and that this machine's clock is near its clock.

        Raises:
            StateConflict: no verifier is known, another one, or the clocks differ.
            ServiceUnreachable: it does not answer.
        """
        if self.verifier is None:
            raise StateConflict(
                "an anchored account hands claims to the verifier", expected="verifier_url="
            )
        # Read before and after: the time that the reply travels must not look like a wrong clock.
        begun = self.clock()
        keys = await self.verifier.keys()
        policy = self.window.view.policy
        # A claim that another service takes keeps nobody from staying silent.
        if keys.verifier != policy.keys.verifier:
            raise StateConflict(
                "another verifier than the policy's listens there",
                where="verifier_url",
                expected=policy.keys.verifier.raw.hex(),
            )
        skew = 1000 * policy.clock_skew_seconds
        if not begun - skew <= keys.time <= self.clock() + skew:
            raise StateConflict(
                f"this machine's clock is {(self.clock() - keys.time) / 1000:+.1f} s off",
                where="clock",
                expected=f"within {policy.clock_skew_seconds} s of the verifier's",
            )

    async def _fetch_window(self) -> Window:
        if self._wanted is not None:
            value = await self.provider.get(f"/v1/windows/{self._wanted}")
            return self._authenticated(parsed(ShownWindow.from_json, value))
        # The others may be many, and have megabytes each.
        shown = await self.provider.get("/v1/windows?served=true")
        windows = parsed(WindowList.from_json, shown)
        candidates = [window for window in windows.windows if window.state in SERVED]
        # Which of several is meant is not guessed: each has a budget and a chain of its own.
        if len(candidates) != 1:
            names = ", ".join(window.window for window in candidates) or "none"
            raise StateConflict(f"windows being served: {names}", expected="name one: window=")
        return self._authenticated(candidates[0])

    def _authenticated(self, shown: ShownWindow) -> Window:
        return parsed(lambda window: authenticate(window, self._pins), shown)

    def _prepare_keys(self, account: AccountState) -> None:
        """Open the state directory, if there is one, with the keys that it holds or gets now."""
        policy, given = self.window.view.policy, self._dispute_key
        if self._state_root is None:
            if given is not None:
                self.keys = AccountKeys(policy.origin, account.pseudonym, given)
            return
        if self.state is None:
            # A chain is of one account in one window: its keys must not serve another.
            folder = self._state_root / policy.window / account.pseudonym.hex()[:16]
            self.state = StateDirectory(folder)
        keys = self.state.keys()
        if keys is None:
            # Of a plain account that somebody else registered with this key nothing is missing.
            known = given is not None and account.dispute_key == given.public.raw
            if account.slot is not None and (self.anchored or not known):
                raise StateConflict(
                    "the account is registered, and this state directory has no keys for it",
                    where=str(self.state.directory),
                    expected="the directory of the registration, or another account",
                )
            length = policy.queries_per_account if self.anchored else 0
            keys = self.state.make_keys(policy.origin, account.pseudonym, length, given)
            # Drawn just now, so that nobody can have asked for its counter 0 before.
            self.began_chain = True
        if (keys.origin, keys.pseudonym) != (policy.origin, account.pseudonym):
            raise StateConflict("the keys are of another account", where=str(self.state.directory))
        if given is not None and keys.dispute_key.public != given.public:
            raise StateConflict("it holds another dispute key", where=str(self.state.directory))
        if self.anchored != (keys.seed is not None):
            raise StateConflict(
                "the keys are of a plain account" if self.anchored else "it holds a nonce chain",
                where=str(self.state.directory),
                expected=f"anchored={not self.anchored}",
            )
        self.keys = keys
        if keys.seed is not None:
            self.chain = NonceChain(policy.window, keys.pseudonym, keys.seed, keys.length)

    async def _included(self, account: AccountState) -> AccountState:
        """Wait for the registration's inclusion and return the account with it, activated."""
        deadline = asyncio.get_running_loop().time() + _REGISTRATION_SECONDS
        while True:
            entry = account.registration
            if entry is None:
                raise AnswerRejected("no registration entry", where=self.window.name)
            if check_entry(entry, self.window, account.expected(self.window)):
                break
            if asyncio.get_running_loop().time() > deadline:
                raise ServiceUnreachable(
                    "no inclusion proof of the registration",
                    where=self.window.name,
                    expected="a checkpoint that the verifier cosigned",
                )
            await asyncio.sleep(POLL_SECONDS)
            account = await self.account()
        if activation_of(entry.index, self.window.view.covered_sizes) is None:
            await self._fetch_again()  # released since the first look, perhaps
        # The provider refuses queries before that; this error names the instant to wait for.
        check_activated(entry, self.window, self.clock())
        if self.state is not None:
            await asyncio.to_thread(self.state.keep_account, account)
        return account

    def _check_counter(self, state: StateDirectory, account: AccountState) -> None:
        counter = state.next_counter()
        # One more than kept here may be what is promised: a question to be answered is
        # charged before its promise arrives.
        charges = self.window.view.policy.generation is not None
        pending = charges or state.pending() is not None
        if not counter <= account.counter <= counter + pending:
            raise StateConflict(
                f"the provider has logged {account.counter} records, this client {counter}",
                where=str(state.directory),
                expected="a state directory that was not restored; else register another account",
            )

    def _check_embedder(self) -> None:
        if self.embedder is None:
            return
        # Another embedder would find every honest answer false.
        if self.embedder.manifest().digest() != self.window.view.opening.embedder_digest:
            raise StateConflict(
                f"{self.embedder.name} is not the committed embedder",
                where=self.window.name,
                expected=self.window.shown.embedder.name,
            )
