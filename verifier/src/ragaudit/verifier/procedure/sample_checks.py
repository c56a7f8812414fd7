"""Checks 16 and 17: the sample, and the noise keys of its records."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.challenge import Response, receipts_digest
from ragaudit.ledger.messages.seed_commitments import verify_key_opening
from ragaudit.ledger.messages.strata import Stratum
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.sample import draw_charges, draw_rows
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.logged_charges import LoggedCharge
from ragaudit.verifier.procedure.logged_records import LoggedRecord


def check_sampling(context: Context, found: Findings) -> None:
    """16: everything was final before the sample could be known; all of it was answered."""
    instant = context.policy.sampling_instant
    # A log that can still grow once the sample is known is a log without the sampled records.
    with found.attempt("final checkpoint"):
        if context.final_time >= instant:
            cosigned = rfc3339(1000 * context.final_time)
            found.fault(f"cosigned at {cosigned}, expected before {rfc3339(1000 * instant)}")
    with found.attempt("receipts list"):
        _check_receipts_list(context)
    with found.attempt("activations"):
        _check_activations(context)
    with found.attempt("clock"):
        # For their times: a claim without one in the clock is this check's fault.
        next(context.claims, None)
    with found.attempt("sample"):
        _check_sample(context)
    with found.attempt("responses"):
        _check_answered(context, found)
        found.summary = f"{len(context.challenged)} records sampled and answered in time"


def _check_receipts_list(context: Context) -> None:
    receipts = context.receipts
    message = context.receipts_list
    if message.window != context.policy.window:
        raise RejectedError("of another window")
    if message.time >= 1000 * context.policy.sampling_instant:
        raise RejectedError("made after the sampling instant")
    signed = set(receipts.identities)
    # It was published before the sample: no receipt can be added, or dropped, once that is known.
    if (message.count, message.digest) != (len(signed), receipts_digest(signed)):
        raise RejectedError("not the receipts at hand")


def _check_activations(context: Context) -> None:
    """The chain is checked where the activations are read; here, what each one says."""
    sizes, policy = context.covered_sizes, context.policy
    known = sorted(context.checkpoints, key=lambda checkpoint: checkpoint.time)
    times = [checkpoint.time for checkpoint in known]
    largest = [0, *accumulate((checkpoint.size for checkpoint in known), max)]
    for a, covered in enumerate(sizes, start=1):
        instant = policy.activation_instants[a - 1]
        expected = largest[bisect_left(times, instant)]  # cosigned strictly before
        # A larger size would activate entries that were logged when the value was out already.
        if covered != expected:
            raise RejectedError(f"activation {a} covers {covered}", expected=str(expected))
        if context.activations[a].time < 1000 * instant:
            raise RejectedError(f"activation {a} was released before its instant")


def _check_sample(context: Context) -> None:
    policy, log, records = context.policy, context.log, context.records
    receipts = context.receipts
    challenge = context.challenge
    if challenge.window != policy.window:
        raise RejectedError("challenge of another window")
    anchor = context.countersignature.activation_anchor
    last = policy.activations
    # Fixed before the first query: not even the verifier can choose the sample.
    verify_activation_preimage(policy.window, anchor, last, challenge.preimage)
    if (challenge.final_size, challenge.final_root) != (log.tree.size, log.tree.root()):
        raise RejectedError("the challenge names another final log")
    # Who submitted receipts decides the strata.
    if challenge.receipts_list != context.receipts_list:
        raise RejectedError("the challenge names another receipts list")
    seed = sampling.sampling_seed(log.tree.root(), challenge.preimage, context.sampling_round)
    strata = sampling.draw_sample(
        (
            sampling.LoggedRecord(logged.entry, logged.tenant, logged.pseudonym)
            for logged in records.summaries()
        ),
        tenants=policy.tenants,
        receipts=set(receipts.indices),
        rule=policy.audit,
        seed=seed,
    )
    if policy.generation is not None:
        strata += draw_charges(
            (
                sampling.LoggedRecord(one.entry, one.tenant, one.pseudonym)
                for one in context.charges.summaries()
            ),
            tenants=policy.tenants,
            rule=policy.audit,
            whole=policy.generation.prove == "all",
            seed=seed,
        )
    if policy.owners is not None and policy.owners.rows is not None:
        strata += draw_rows(context.last_rows, rule=policy.owners.rows, seed=seed)
    if challenge.strata != tuple(map(_challenged, strata)):
        raise RejectedError("the sample is not the one that the seed gives")


def _challenged(draw: sampling.DrawnStratum) -> Stratum:
    return Stratum.of(draw.stratum.id, draw.stratum.population, draw.sample)


def _check_answered(context: Context, found: Findings) -> None:
    deadline, received = context.challenge.deadline, context.clock.responses
    opened: list[LoggedRecord | LoggedCharge] = [*context.challenged, *context.challenged_charges]
    for logged in opened:
        with found.attempt(logged.name):
            context.response(logged)
            if logged.index not in received:
                raise RejectedError("no time of its answer is known")
            # Late is as bad as never: the provider must not gain time to look for a way out.
            if received[logged.index] > deadline:
                time = rfc3339(received[logged.index])
                raise RejectedError(f"answered at {time}", expected=f"by {rfc3339(deadline)}")


def responses(context: Context, found: Findings) -> Iterator[tuple[LoggedRecord, Response]]:
    """Return the sampled records with readable responses; the others are `sampling`'s.

    Args:
        context: of the run.
        found: of the check that asks; gets what is missing.
    """
    records = context.sampled
    for done, logged in enumerate(records):
        context.progress(found.owner, done, len(records))
        try:
            response = context.response(logged)
        except MissingInput as missing:
            found.add_missing(missing, logged.name)
        else:
            yield logged, response
    context.progress(found.owner, len(records), len(records))


def check_seed(context: Context, found: Findings) -> None:
    """17: every opened key was committed to before the window, and none occurs twice."""
    places: dict[bytes, tuple[int, int, int]] = {}
    for logged, response in responses(context, found):
        with found.attempt(logged.name):
            _check_place(context, logged)
            record, policy = logged.record, context.policy
            verify_key_opening(
                root=context.seed_root(record.epoch),
                epoch=record.epoch,
                slot=record.slot,
                counter=record.counter,
                slots=policy.slots,
                queries=policy.queries_per_account,
                opening=response.key,
            )
            # One key for two records gives one noise twice: the difference of their scores is bare.
            place = (record.epoch, record.slot, record.counter)
            if places.setdefault(response.key.key, place) != place:
                raise RejectedError("the key of another record was committed again")
    found.summary = f"{len(places)} noise keys opened, each as committed"


def _check_place(context: Context, logged: LoggedRecord) -> None:
    """MissingInput unless C_seed has a place for the record at all: each number has its check."""
    record, policy = logged.record, context.policy
    # NOT RUN and not FAIL: no opening is right where the committed tree has no place.
    _ = context.seed_root(record.epoch)
    # Beyond the limit there is no key in the tree: that there is such a query is check 8's.
    if record.counter >= policy.queries_per_account:
        raise MissingInput("counters", f"{logged.name}: there is no key for query {record.counter}")
    if record.slot >= policy.slots:
        registered = context.registration(record.pseudonym).slot
        owner = "registrations" if record.slot == registered else "counters"
        raise MissingInput(owner, f"{logged.name}: there is no slot {record.slot}")
