"""Check a receipt file apart from the client that received it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragaudit.client.checker import pending
from ragaudit.client.core_operations import CoreOperations
from ragaudit.client.disputing import Holder, registration_proof
from ragaudit.client.facts import Facts
from ragaudit.client.results import CheckedReceipt
from ragaudit.client.revealing import seconds_to_reveal
from ragaudit.client.transport import json_value
from ragaudit.client.window import AccountState, Pins, Window, authenticate
from ragaudit.encoding import canonical_json
from ragaudit.encoding.commands import of_file
from ragaudit.encoding.errors import MalformedError, RagauditError, UnavailableError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_decode, rfc3339
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.generated import GeneratedFile, GenerationRequest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.public_halves import PublicHalf, bound_receipt, read_public_half
from ragaudit.ledger.messages.receipt_check import (
    StepResult,
    check_promise,
    check_quorum,
    check_receipt_file,
)
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.ledger.messages.shown import ShownWindow

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = [
    "Facts",
    "check",
    "check_promised",
    "load_embedder",
    "parsed",
    "pinning",
    "public_half",
    "read_account",
    "read_file",
    "read_holder",
    "read_json",
    "read_key",
    "read_policy",
    "read_policy_digest",
    "read_promise",
    "read_request",
    "read_window",
]

F = TypeVar("F", ReceiptFile, GeneratedFile)

# Far above any receipt: a path to something endless must not fill the memory.
MAX_FILE_BYTES = 2**28


def read_file(path: Path) -> dict[str, Any]:
    """Return the JSON object of a receipt file, or of its public half, in its canonical bytes.

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


def public_half(value: Mapping[str, Any], path: Path) -> PublicHalf:
    """Return the public half of a receipt file, or of a file that is a public half alone.

    It is that of a record, or of an answer in words.

    Args:
        value: the file's JSON.
        path: of the file, for the error.

    Raises:
        MalformedError: neither of the two.
    """
    try:
        return read_public_half(value.get("public", value))
    except MalformedError as error:
        raise MalformedError(
            error.what, where=f"{path}: {error.where}", expected=error.expected
        ) from error


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
    return Holder(secret, owner, registration_proof(owner.registration))


def read_key(path: Path) -> PrivateKey:
    """Return the private key in a file that `ragaudit key make` wrote.

    Args:
        path: of 64 hexadecimal digits.

    Raises:
        MalformedError: there is none in it.
        UnavailableError: it cannot be read.
    """
    return _key(read_bytes(path).decode("ascii", "replace").strip(), path)


def _kept_key(state: Path) -> PrivateKey:
    path = state / "registration.json"
    with of_file(path):
        value = canonical_json.loads(read_bytes(path))
    text = value.get("dispute_seed") if isinstance(value, dict) else None
    return _key(str(text), path)


def _key(text: str, path: Path) -> PrivateKey:
    try:
        return PrivateKey.from_seed(hex_decode(text, 32))
    except MalformedError:
        # What the file holds is not repeated: it may be a secret.
        raise MalformedError("no key in it", where=str(path), expected="64 digits 0-9a-f") from None


def read_request(path: Path) -> Request | GenerationRequest:
    """Return the request at ``path``, as it was posted.

    Args:
        path: JSON; ``filter`` and ``counter`` may be left out.

    Raises:
        MalformedError: not a request.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise MalformedError("not an object", where=str(path), expected="a request")
    asked = {"filter": "", "counter": None, **value}
    # How many rows come back is asked of the retrieval channel alone.
    with of_file(path):
        return (Request if "top_k" in asked else GenerationRequest).from_json(asked)


def read_promise(path: Path) -> Promise:
    """Return the promise at ``path``.

    Args:
        path: canonical JSON, as the provider sent it.

    Raises:
        MalformedError: not a promise.
    """
    with of_file(path):
        return Promise.parse(read_bytes(path))


def read_policy_digest(path: Path) -> bytes:
    """Return the digest of the policy at ``path``, canonical JSON, perhaps with a last newline.

    Args:
        path: of the policy alone, as the account agreed to it.

    Raises:
        MalformedError: not a policy, or not in its canonical bytes.
    """
    return read_policy(path).digest


def read_policy(path: Path) -> Policy:
    """Return the policy at ``path``.

    Args:
        path: of the policy alone, as the account agreed to it.

    Raises:
        MalformedError: not a policy, or not in its canonical bytes.
    """
    with of_file(path):
        return Policy.from_json(canonical_json.loads(read_bytes(path).rstrip(b"\n")))


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


def pinning(window: Window) -> StepResult:
    """Return step 0: whether the window is the one that the account agreed to.

    Args:
        window: authenticated with or without pins.
    """
    if window.pinned:
        return StepResult(0, "window", "done")
    return StepResult(0, "window", "not done", "neither --verifier-key nor --policy was given")


def check(
    value: Mapping[str, Any], window: Window, facts: Facts, path: Path | None = None
) -> CheckedReceipt:
    """Run the steps on a receipt file and return it with their outcomes.

    Args:
        value: the file's JSON.
        window: the window that it names.
        facts: what is known beside it; a step without what it needs is "not done".
        path: of the file, if it is one.

    Raises:
        RejectedError: the provider signed something false: the first step that fails, or a
            registration that is not in the log.
        MalformedError: not a receipt file, and not because of the provider.
    """
    file = parsed(ReceiptFile, value, window.view.policy)
    steps = check_receipt_file(
        file, window.view, CoreOperations(),
        anchor=facts.chain, account=facts.view(window), promise=facts.promise,
        embed=facts.embed(window),
    )  # fmt: skip
    quorum = check_quorum(file.public, window.view.policy)
    return CheckedReceipt(file, [pinning(window), *steps, *quorum], path)


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
    promise, request, policy = read_promise(file), read_request(query), window.view.policy
    check_promise(
        promise, request, window.view, CoreOperations(),
        account=facts.view(window), embed=facts.embed(window),
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


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Args:
        path: of a file of at most 2^28 bytes.

    Raises:
        MalformedError: there is none, or it is too long.
        UnavailableError: it cannot be read.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise MalformedError("file too long", where=str(path))
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise MalformedError("no such file", where=str(path)) from error
    except OSError as error:
        raise UnavailableError(f"cannot be read: {error.strerror}", where=str(path)) from error


def parsed(kind: type[F], value: Mapping[str, Any], policy: Policy) -> F:
    """Return a receipt file, of a record or of an answer in words; raises as `check`."""
    try:
        return kind.from_json(value)
    except RagauditError as error:
        # Under the provider's signature another form is a false answer, not a bad file.
        if _provider_signed(value, policy):
            where = f"step 4 (answer digest), {error.where}"
            raise ReceiptRejected(error.what, where=where, expected=error.expected) from error
        raise


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
