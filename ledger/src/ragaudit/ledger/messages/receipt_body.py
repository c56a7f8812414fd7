"""Steps 3, 5 and 9 of the check of a receipt, and of a promise (docs/spec/05-records.md §5.9)."""

from collections.abc import Sequence
from typing import NoReturn

from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.entries import Charge, QueryEntry, Record
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_views import AccountView, Embed, GroupOperations, WindowView
from ragaudit.ledger.messages.requests import Openings, Request, float32_values
from ragaudit.ledger.messages.schedules import LoggedVersion


def check_body(record: QueryEntry, request: Request, view: WindowView) -> LoggedVersion:
    """Check what an entry must say of policy, opening and request; return the index it names.

    Args:
        record: promised or logged; also a charge entry.
        request: the account's own copy.
        view: of the window.

    Raises:
        ReceiptRejected: it says something else.
        MalformedRecord: a tenant or version that the window does not have.
    """
    policy = view.policy
    index = view.index(record)
    same("policy", record.policy_digest, policy.digest)
    same("window", record.window, policy.window)
    view.epoch(record)
    if isinstance(record, Charge):
        _check_charge(record, policy)
    else:
        _check_record(record, request, policy)
    if record.counter >= policy.queries_per_account:
        reject(f"counter {record.counter}", "counter", f"0..{policy.queries_per_account - 1}")
    if record.slot >= policy.slots:
        reject(f"slot {record.slot}", "slot", f"0..{policy.slots - 1}")
    if record.activation >= policy.activations:
        reject(f"activation {record.activation}", "activation", f"1..{policy.activations - 1}")
    if not 1000 * policy.start <= record.time < 1000 * policy.end:
        period = f"{rfc3339(1000 * policy.start)} to {rfc3339(1000 * policy.end)}"
        reject("a time outside the window", "time", period)
    if request.counter is not None:
        same("counter", record.counter, request.counter)
    return index


def _check_record(record: Record, request: Request, policy: Policy) -> None:
    same("top_k", record.top_k, request.top_k)
    if record.top_k > policy.top_k_max:
        reject(f"K = {record.top_k}", "top_k", f"1..{policy.top_k_max}")
    if not policy.noised and record.nonce is not None:
        reject("a nonce where no noise is drawn", "nonce", "none")


def _check_charge(charge: Charge, policy: Policy) -> None:
    terms = policy.generation
    if terms is None:
        reject("a charge entry", "charge", "a window with a generation channel")
    # Another threshold would be one that was chosen with the question in hand. What bins have to do
    # with it, check 27 says.
    if terms.adaptive is None:
        same("threshold", charge.threshold, terms.threshold)
    # Later ones are of a restored prover, which may have lost charges.
    same("epoch", charge.epoch, 1)


def check_account(
    record: QueryEntry, view: WindowView, account: AccountView, index: LoggedVersion
) -> str | None:
    """Compare with what is known of the account; return what is not known.

    Args:
        record: promised or logged.
        view: of the window.
        account: what is known.
        index: the index that the record names.

    Raises:
        ReceiptRejected: the record says something else.
    """
    for name in ("tenant", "pseudonym", "slot", "counter"):
        expected = getattr(account, name)
        if expected is not None:
            same(name, getattr(record, name), expected)
    if account.pseudonym is None:
        return "the account is not known here"
    if account.registration_index is None or not view.covered_sizes:
        return "the activation of the registration is not known here"
    entries = (0, account.registration_index, index.entry, view.epoch(record).entry)
    instants = [activation_of(index, view.covered_sizes) for index in entries]
    known = [instant for instant in instants if instant is not None]
    if len(known) < len(entries):
        reject("the registration is not activated", where="activation")
    # The latest of them: no randomness that was out before opening, registration, index and epoch
    # were logged.
    same("activation", record.activation, max(known))
    return None


def check_openings(
    openings: Openings,
    record: QueryEntry,
    request: Request,
    policy: Policy,
    operations: GroupOperations,
) -> None:
    """Check what opens a record: the question and filter asked, the embedding and its sketch.

    Args:
        openings: of the receipt or promise.
        record, request, policy, operations: as of `check_receipt_file`.

    Raises:
        ReceiptRejected: it opens something else, or an embedding that must not be.
        UnsupportedError, MalformedRecord: a request that the window does not take.
    """
    request.question.check_policy(policy)
    request_filter(request.filter, policy)
    openings.verify(record, request)
    embedding = openings.embedding
    if len(embedding) != policy.dimension:
        reject(f"{len(embedding)} entries", "embedding", f"{policy.dimension}")
    # A longer query has scores beyond B², which noise of this sigma does not cover.
    if sum(entry * entry for entry in embedding) > policy.squared_norm:
        reject("norm above the bound", "embedding", f"squared norm at most {policy.squared_norm}")
    # Of a vector nothing is left to an embedder: the integers follow from it exactly.
    if request.vector:
        made = operations.quantise(float32_values(request.vector), policy.norm_bound)
        if tuple(map(int, made)) != embedding:
            reject("not the integers of the vector", where="embedding")
    terms = policy.estimator
    if operations.sketch(embedding, terms.seed, terms.sketch_bits) != openings.sketch:
        reject("not the sketch of the embedding", where="sketch")


def check_embeddings(
    names: Sequence[str],
    texts: Sequence[str],
    vectors: Sequence[Sequence[int]],
    embed: Embed,
    tolerance: int,
) -> None:
    """Check embeddings against the committed embedder's.

    Args:
        names: of the texts, for errors.
        texts: what was embedded.
        vectors: their integer embeddings, as they are shown.
        embed: the committed embedder.
        tolerance: of the squared distance.

    Raises:
        ReceiptRejected: one farther off.
    """
    for name, made, vector in zip(names, embed(texts), vectors, strict=True):
        if len(made) != len(vector):
            reject(f"{len(vector)} entries", name, f"{len(made)}")
        distance = sum((int(a) - int(b)) ** 2 for a, b in zip(made, vector, strict=True))
        if distance > tolerance:
            reject(f"embedding off by {distance}", name, f"at most {tolerance}")


def same(where: str, found: object, expected: object) -> None:
    """Check that ``found`` is ``expected``; ReceiptRejected, which shows both."""
    if found != expected:
        reject(f"{_shown(found)}", where, _shown(expected))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def reject(what: str, where: str = "", expected: str = "") -> NoReturn:
    """Raise ReceiptRejected."""
    raise ReceiptRejected(what, where=where, expected=expected)
