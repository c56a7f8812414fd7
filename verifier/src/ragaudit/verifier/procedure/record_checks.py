"""Checks 9 to 11: every record at its time, in its tenant, with its client's nonce."""

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.times import rfc3339
from ragaudit.ledger.messages.chains import activation_of, verify_nonce
from ragaudit.ledger.messages.records import Epoch, Version
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.log_view import LoggedRecord
from ragaudit.verifier.procedure.time_bounds import TimeBounds


def check_schedule(context: Context, found: Findings) -> None:
    """9: version, epoch, activation and time of every entry."""
    for kind in (Version.KIND, Epoch.KIND):
        for entry in context.log.of_kind(kind):
            found.fault(f"a {kind} entry after the opening", f"entry {entry.index}")
    bounds = None
    with found.attempt():
        bounds = TimeBounds(context)
        _check_other_times(context, bounds, found)
    for pseudonym, records in context.by_account.items():
        activation = None
        with found.attempt(f"account {pseudonym.hex()}"):
            activation = _Activation(context, pseudonym)
        last = 0
        for each in records:
            with found.attempt(each.name):
                _check_in_force(context, each)
            if activation is not None:
                with found.attempt(each.name):
                    activation.check(each)
            if bounds is not None:
                with found.attempt(each.name):
                    bounds.check_record(each)
            if each.record.time < last:
                found.fault("earlier than the account's record before it", each.name)
            last = each.record.time
    found.summary = f"{len(context.records)} records at times that the checkpoints confirm"


def _check_other_times(context: Context, bounds: TimeBounds, found: Findings) -> None:
    for each in context.registrations:
        with found.attempt(each.name):
            bounds.check_registration(each)
    with found.attempt("close"):
        bounds.check_close(context.close.time, context.log.entries[-1].index)


def _check_in_force(context: Context, each: LoggedRecord) -> None:
    record, policy = each.record, context.policy
    if (record.version, record.epoch) != (1, 1):
        raise RejectedError(f"version {record.version}, epoch {record.epoch}", expected="1 and 1")
    if not 1000 * policy.start <= record.time < 1000 * policy.end:
        raise RejectedError(f"at {rfc3339(record.time)}, outside the window")


class _Activation:
    """Which activation an account's records must use, and from when on."""

    def __init__(self, context: Context, pseudonym: bytes) -> None:
        registration = context.registration(pseudonym)
        sizes = context.covered_sizes
        opened, registered = activation_of(0, sizes), activation_of(registration.index, sizes)
        if opened is None or registered is None:
            raise RejectedError("its registration was never activated")
        self._registered = registration.index
        self._due = max(opened, registered)
        self._instant = 1000 * context.policy.activation_instants[self._due - 1]

    def check(self, each: LoggedRecord) -> None:
        """RejectedError unless the record uses this activation, and after its instant."""
        if each.index < self._registered:
            raise RejectedError("before its account's registration")
        if each.record.activation != self._due:
            raise RejectedError(f"activation {each.record.activation}", expected=str(self._due))
        if each.record.time < self._instant:
            raise RejectedError(
                f"at {rfc3339(each.record.time)}", expected=f"{rfc3339(self._instant)} or later"
            )


def check_containment(context: Context, found: Findings) -> None:
    """10: policy, window, tenant, index size and K of every record."""
    policy = context.policy
    for each in context.records:
        record = each.record
        if (record.policy_digest, record.window) != (policy.digest, policy.window):
            found.fault("names another policy or window", each.name)
        if record.top_k > policy.top_k_max:
            found.fault(f"K is {record.top_k}, at most {policy.top_k_max}", each.name)
        if each.eager:
            found.fault("names an eager proof, which the policy does not have", each.name)
        with found.attempt(each.name):
            tenant = context.registration(record.pseudonym).registration.tenant
            rows = _rows(context, tenant)
            if record.tenant != tenant:
                raise RejectedError(f"tenant {record.tenant}", expected=f"{tenant}, as registered")
            if record.rows != rows:
                raise RejectedError(f"N is {record.rows}", expected=str(rows))
    found.summary = f"{len(context.records)} records, each in its account's tenant"


def _rows(context: Context, tenant: str) -> int:
    """N of the tenant's index; that policy and opening have the tenant is others' to say."""
    if tenant not in context.tenants:
        raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
    if tenant not in context.opened:
        raise MissingInput("commitments", f"the opening has no index of {tenant}")
    return context.opened[tenant].rows


def check_nonces(context: Context, found: Findings) -> None:
    """11: anchored accounts' records carry the nonces of their chain, plain ones none."""
    anchored = 0
    for pseudonym, records in context.by_account.items():
        with found.attempt(f"account {pseudonym.hex()}"):
            anchor = context.registration(pseudonym).registration.anchor
            if anchor is not None:
                anchored += 1
                _check_chain(context, pseudonym, anchor, records)
            elif any(each.record.nonce is not None for each in records):
                raise RejectedError("a nonce in a record of a plain account")
    _check_share(context, found)
    found.summary = (
        f"nonces of {anchored} anchored accounts lie on their chains; "
        f"{len(context.shown)} of these accounts showed theirs to the verifier"
    )


def _check_share(context: Context, found: Findings) -> None:
    """The verifier's terms may demand a share of records whose account showed its chain."""
    records, least = context.records, context.terms.bounds["least_anchored_share"]
    shown = sum(each.record.pseudonym in context.shown for each in records)
    if shown < least * len(records):
        found.fault(
            f"{shown} of {len(records)} records are of accounts that showed their chain, and the "
            f"verifier's terms demand a share of {least}"
        )


def _check_chain(
    context: Context, pseudonym: bytes, anchor: bytes, records: tuple[LoggedRecord, ...]
) -> None:
    """Each nonce hashes to that of the counter before it, the first one to the anchor."""
    window, limit = context.policy.window, context.policy.queries_per_account
    previous = anchor
    for counter, each in enumerate(records):
        nonce = each.record.nonce
        if each.record.counter != counter or counter >= limit:
            raise MissingInput(
                "counters", f"{each.name}: counter {each.record.counter} is out of order"
            )
        if nonce is None:
            raise RejectedError("an anchored account's record without a nonce", where=each.name)
        verify_nonce(window, pseudonym, previous, counter, nonce, after=counter - 1)
        previous = nonce
