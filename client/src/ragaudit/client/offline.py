"""What a command is given: files, keys, a window with its pins; and the check of receipt files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragaudit.client.asking import seconds_to_reveal
from ragaudit.client.blocking import call
from ragaudit.client.checks import CoreOperations, Facts, check_file, embedding, pending
from ragaudit.client.results import Answered, channel_of
from ragaudit.client.state import key_of, read_bytes, read_key
from ragaudit.client.transport import json_value
from ragaudit.client.verifier import Holder
from ragaudit.client.window import AccountState, Pins, Window, authenticate, check_entry
from ragaudit.encoding import canonical_json
from ragaudit.encoding.commands import of_file
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, RagauditError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import AccountView, Embed, check_promise
from ragaudit.ledger.messages.receipts import (
    GenerationRequest,
    PublicPart,
    bound_receipt,
    read_public_part,
    read_receipt,
)
from ragaudit.ledger.messages.requests import Request
from ragaudit.ledger.messages.shown import ShownWindow

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = [
    "Facts",
    "Source",
    "account_view",
    "check",
    "check_promised",
    "embed_of",
    "load_embedder",
    "pins_of",
    "public_half",
    "read_account",
    "read_as",
    "read_file",
    "read_holder",
    "read_json",
    "read_policy",
    "read_request",
    "read_window",
]

T = TypeVar("T")


def pins_of(policy: Path | None, verifier_key: PublicKey | None, allow_unpinned: bool) -> Pins:
    """Return what the options pin.

    Args:
        policy: file with the policy that the account agreed to.
        verifier_key: of the verifier.
        allow_unpinned: whether to go without.

    Raises:
        MalformedError: nothing is pinned, or not a policy.
    """
    pins = Pins(
        verifier_key,
        None if policy is None else read_policy(policy).digest,
    )
    expected = "--verifier-key or --policy, or --allow-unpinned"
    return pins.demanded(expected, allow_unpinned=allow_unpinned)


class Source:
    """Where windows come from, and what is known of them from elsewhere: options of a command.

    Attributes:
        policy: file with the policy that the account agreed to, which is a pin.
        pins: what is known.
    """

    def __init__(
        self,
        window: Path | None,
        prover: str | None,
        policy: Path | None,
        verifier_key: PublicKey | None,
        allow_unpinned: bool,
    ) -> None:
        """Read nothing but the policy yet.

        Args:
            window: file with the provider's reply.
            prover: URL of the provider.
            policy, verifier_key, allow_unpinned: as of `pins_of`.

        Raises:
            MalformedError: nothing is pinned, or not a policy.
        """
        self._window, self._prover, self.policy = window, prover, policy
        self.pins = pins_of(policy, verifier_key, allow_unpinned)

    @property
    def none(self) -> bool:
        """Whether no window can be had."""
        return self._window is None and self._prover is None

    def load(self, name: str) -> Window:
        """Return a window, from the file or from the provider.

        Args:
            name: of the window, for the provider.

        Raises:
            InvalidArgumentError: both sources, or none.
            RagauditError: as `authenticate`.
        """
        # Not both: which of two replies counts would be a guess.
        if (self._window is None) == (self._prover is None):
            raise InvalidArgumentError(
                "one source of the window is needed", expected="--window or --prover"
            )
        if self._window is not None:
            return read_window(self._window, self.pins)
        shown = call(str(self._prover), lambda service: service.get(f"/v1/windows/{name}"))
        return authenticate(ShownWindow.from_json(shown), self.pins)

    def of_receipt(self, value: dict[str, Any], path: Path) -> Window:
        """Return the window that a receipt names, as `load`.

        Args:
            value: the receipt file's JSON.
            path: of the file, for errors.
        """
        return self.load(public_half(value, path).window)


def read_file(path: Path) -> dict[str, Any]:
    """Return the JSON object of a receipt file, or of its public part, in its canonical bytes.

    Args:
        path: at most 2^28 bytes.

    Raises:
        MalformedError: another form, also a copy that was formatted anew.
    """
    # Byte for byte: a file that was formatted anew has another digest and cannot be disputed.
    data = read_bytes(path)
    try:
        value = canonical_json.loads(data)
    except MalformedError as error:
        raise MalformedError(
            error.what, where=str(path), expected="the file as the service sent it, byte for byte"
        ) from error
    if not isinstance(value, dict):
        raise MalformedError("not an object", where=str(path), expected="a receipt file")
    return value


def public_half(value: Mapping[str, Any], path: Path) -> PublicPart:
    """Return the public part of a receipt file, or of a file that is a public part alone.

    It is that of a record, or of a generated answer.

    Args:
        value: the file's JSON.
        path: of the file, for the error.

    Raises:
        MalformedError: neither of the two.
    """
    try:
        return read_public_part(value.get("public", value))
    except MalformedError as error:
        raise MalformedError(
            error.what, where=f"{path}: {error.where}", expected=error.expected
        ) from error


def read_as(path: Path, parse: Callable[[bytes], T]) -> T:
    """Return what ``parse`` makes of a file's bytes; what is malformed names the file.

    Args:
        path: of at most 2^28 bytes.
        parse: raises MalformedError for other bytes.
    """
    with of_file(path):
        return parse(read_bytes(path))


def read_window(path: Path, pins: Pins) -> Window:
    """Return the window saved from `GET /v1/windows/{w}`; raises as `authenticate`.

    Args:
        path: of the reply, as it was saved.
        pins: what is known from elsewhere.
    """
    with of_file(path):
        shown = ShownWindow.from_json(read_json(path))
    return authenticate(shown, pins)


def read_account(path: Path) -> AccountState:
    """Return the account saved from `GET /v1/windows/{w}/account`.

    Args:
        path: of the reply, as it was saved.

    Raises:
        MalformedError: not an account.
    """
    with of_file(path):
        return AccountState.from_json(read_json(path))


def read_holder(state: Path | None, key: Path | None, account: Path | None) -> Holder:
    """Return the account that signs: from a state directory, or a key file and the saved account.

    Args:
        state: the state directory; then the others are None.
        key: file with the dispute key, 64 hexadecimal digits.
        account: saved reply of `GET /v1/windows/{w}/account`.

    Raises:
        MalformedError: neither or both are given, a file of another kind, another key than
            the registration's.
    """
    if (state is None) == (key is None) or (key is None) != (account is None):
        raise MalformedError("which account signs?", expected="--state, or --key and --account")
    if state is not None:
        secret = _kept_key(state)
        owner = read_account(state / "account.json")
    else:
        secret = read_key(Path(str(key)))
        owner = read_account(Path(str(account)))
    # The verifier takes statements under the registration's own key only (spec 5.10).
    if owner.dispute_key != secret.public.raw:
        raise MalformedError("not the dispute key of the registration", expected="the key in it")
    return Holder(secret, owner, owner.registration)


def _kept_key(state: Path) -> PrivateKey:
    path = state / "registration.json"
    with of_file(path):
        value = canonical_json.loads(read_bytes(path))
    text = value.get("dispute_seed") if isinstance(value, dict) else None
    return key_of(str(text), path)


def read_request(path: Path) -> Request | GenerationRequest:
    """Return the request at ``path``, as it was posted.

    Args:
        path: JSON; ``kind``, ``filter`` and ``counter`` may be left out, as in a call (spec 8.6).

    Raises:
        MalformedError: not a request.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise MalformedError("not an object", where=str(path), expected="a request")
    asked = {"filter": "", "counter": None, **value}
    with of_file(path):
        # How many rows come back is asked of the retrieval channel alone.
        if "top_k" not in asked:
            return GenerationRequest.from_json(asked)
        return Request.from_json({"kind": "vector" if "vector" in asked else "text", **asked})


def read_policy(path: Path) -> Policy:
    """Return the policy at ``path``.

    Args:
        path: of the policy alone, as the account agreed to it.

    Raises:
        MalformedError: not a policy, or not in its canonical bytes.
    """
    return read_as(path, lambda data: Policy.parse(data.rstrip(b"\n")))


def load_embedder(window: Window) -> "Embedder | None":
    """Return the window's committed embedder, or None if it is not installed here.

    Args:
        window: names the embedder, and commits to its manifest.
    """
    try:
        from ragaudit.embedders import registry  # noqa: PLC0415 - an extra
        from ragaudit.embedders.base import EmbedderUnavailable  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    manifest = window.shown.embedder
    # With vectors of the application's own there is nothing to repeat; a service has a key.
    if manifest.kind != "files":
        return None
    name = manifest.name
    # The provider chose the name: only an embedder that is known here is loaded for it.
    if name not in registry.names():
        return None
    try:
        embedder = registry.load(name)
    except EmbedderUnavailable:
        # One that needs a folder, or whose library or files are not here: step 9 is not done.
        return None
    # One of the same name and other weights would find every honest answer false.
    if embedder.manifest().digest() != window.view.opening.embedder_digest:
        return None
    return embedder


def check(
    value: Mapping[str, Any], window: Window, facts: Facts, path: Path | None = None
) -> Answered:
    """Run the steps on a receipt file, of either channel, and return it with their outcomes.

    Args:
        value: the file's JSON.
        window: the window that it names.
        facts: what is known beside it; a step without what it needs is "not done".
        path: of the file, if it is one.

    Raises:
        RejectedError: the provider signed something false: the first step that fails.
        MalformedError: not a receipt file, and not because of the provider.
    """
    try:
        file = read_receipt(value)
    except RagauditError as error:
        # Under the provider's signature another form is a false answer, not a bad file.
        if _provider_signed(value, window.view.policy):
            where = f"step 4 (answer digest), {error.where}"
            raise ReceiptRejected(error.what, where=where, expected=error.expected) from error
        raise
    return channel_of(file).checked(file, check_file(file, window, facts), path)


def account_view(account: AccountState, window: Window) -> AccountView:
    """Return what entries of an account must say, as far as the log shows its registration.

    Args:
        account: as the provider shows it.
        window: in whose log it is.

    Raises:
        AnswerRejected: the registration is another one, or not in the log.
    """
    view, entry = account.view(None), account.registration
    # Without an inclusion proof the provider may still log another registration.
    if entry is not None and check_entry(entry, window, account.expected(window)):
        return view
    return AccountView(view.tenant, view.pseudonym, view.slot, None, None)


def embed_of(window: Window) -> Embed | None:
    """Return what repeats embeddings by the window's embedder, or None as `load_embedder`."""
    embedder = load_embedder(window)
    return None if embedder is None else embedding(embedder, window.view.policy)


def check_promised(file: Path, query: Path, window: Window, facts: Facts, now: int) -> float:
    """Check a promise before its nonce is revealed; return the seconds in which it may be.

    Args:
        file: the promise, written when it arrived.
        query: the request as it was posted, written before that.
        window: the window of the promise.
        facts: account and embedder, where they are known.
        now: Unix milliseconds.

    Raises:
        MalformedError: not such files.
        RejectedError: it is false, or was made after it arrived.
        StateConflict: it was made before it was asked for: perhaps an earlier one, still pending.
        CannotClaim: no time is left to claim it.
    """
    promise, request, policy = read_as(file, Promise.parse), read_request(query), window.view.policy
    check_promise(
        promise, request, window.view, CoreOperations(),
        account=facts.account, embed=facts.embed,
    )  # fmt: skip
    time, skew = promise.promised.time, 1000 * policy.clock_skew_seconds
    # The files' times stand for asking and receiving: nobody else's clock is asked.
    first, last = _written(query) - skew, _written(file) + skew
    if time > last:
        raise ReceiptRejected(
            f"made at {rfc3339(time)}", where="promise, time", expected=f"up to {rfc3339(last)}"
        )
    if time < first:
        raise pending(promise, policy)
    return seconds_to_reveal(promise, policy, now)


def _written(path: Path) -> int:
    """Return when a file was written, Unix milliseconds."""
    return path.stat().st_mtime_ns // 1_000_000


def _provider_signed(value: Mapping[str, Any], policy: Policy) -> bool:
    """Return whether the provider signed the parts of a file, in whatever form."""
    try:
        bound_receipt(value, policy)
    except RagauditError:
        return False
    return True


def read_json(path: Path) -> Any:
    """Return the JSON value of a saved reply, in any spelling.

    Args:
        path: of at most 2^28 bytes.

    Raises:
        MalformedError: not JSON.
    """
    try:
        return json_value(read_bytes(path))
    except ValueError as error:
        raise MalformedError("not JSON", where=str(path)) from error
