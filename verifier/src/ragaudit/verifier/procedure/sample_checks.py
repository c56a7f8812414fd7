"""Checks 16 to 19: the sample, and what the provider opened and proved of each sampled record."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from ragaudit.circuits.noise import noise_key
from ragaudit.circuits.sketch import sketch
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.challenge import Response, Stratum, receipts_digest
from ragaudit.ledger.messages.fields import int16_bytes
from ragaudit.ledger.messages.merkle_commitments import verify_key_opening
from ragaudit.ledger.messages.verdict import Status
from ragaudit.privacy import sample as sampling
from ragaudit.verifier.engines import CommittedEmbedder, ProvenSelection, SelectionsRejected
from ragaudit.verifier.procedure.context import BEACON, Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.log_facts import LoggedRecord

# Records of one index share most of a batch's work, but the noise of all of them is in memory:
# at most about 2^26 values of eight bytes, at least one record.
_BATCH_VALUES: Final = 2**26
_BATCH_RECORDS: Final = 128


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
        _ = context.claims
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
    signed = {(receipt.index, receipt.identity) for receipt in receipts}
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
    strata = sampling.draw_sample(
        (
            sampling.LoggedRecord(logged.index, logged.record.tenant, logged.record.pseudonym)
            for logged in records
        ),
        tenants=policy.tenants,
        receipts={receipt.index for receipt in receipts},
        rule=policy.audit,
        seed=sampling.sampling_seed(log.tree.root(), challenge.preimage, BEACON),
    )
    if challenge.strata != tuple(map(_challenged, strata)):
        raise RejectedError("the sample is not the one that the seed gives")


def _challenged(draw: sampling.DrawnStratum) -> Stratum:
    """The stratum as a challenge names it: a tenant's records are all of them, without a list."""
    of_tenant = draw.stratum.id.startswith("tenant:")
    population = None if of_tenant else draw.stratum.population
    return Stratum(draw.stratum.id, population, draw.sample)


def _check_answered(context: Context, found: Findings) -> None:
    deadline, received = context.challenge.deadline, context.clock.responses
    for logged in context.challenged:
        with found.attempt(logged.name):
            context.response(logged)
            if logged.index not in received:
                raise RejectedError("no time of its answer is known")
            # Late is as bad as never: the provider must not gain time to look for a way out.
            if received[logged.index] > deadline:
                time = rfc3339(received[logged.index])
                raise RejectedError(f"answered at {time}", expected=f"by {rfc3339(deadline)}")


def _responses(context: Context, found: Findings) -> Iterator[tuple[LoggedRecord, Response]]:
    """Sampled records with readable responses; the others are `sampling`'s."""
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
    for logged, response in _responses(context, found):
        with found.attempt(logged.name):
            _check_place(context, logged)
            record, policy = logged.record, context.policy
            verify_key_opening(
                root=context.opening.seed_root,
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
    if record.epoch != 1:
        raise MissingInput("schedule", f"{logged.name}: there is no epoch {record.epoch}")
    # Beyond the limit there is no key in the tree: that there is such a query is check 8's.
    if record.counter >= policy.queries_per_account:
        raise MissingInput("counters", f"{logged.name}: there is no key for query {record.counter}")
    if record.slot >= policy.slots:
        registered = context.registration(record.pseudonym).registration.slot
        owner = "registrations" if record.slot == registered else "counters"
        raise MissingInput(owner, f"{logged.name}: there is no slot {record.slot}")


def check_embedding(context: Context, found: Findings) -> None:
    """18: the query vector is the committed one and short; of the text, where it is due."""
    embedder = _embedder(context, found)
    plain = anchored = 0
    for logged, response in _responses(context, found):
        with found.attempt(logged.name):
            _check_openings(context, logged, response)
        with found.attempt(logged.name):
            _check_text(context, logged, response)
            if embedder is not None:
                _check_embedded(context, embedder, response)
        if embedder is None:
            is_anchored = logged.record.pseudonym in context.anchored
            anchored += is_anchored
            plain += not is_anchored
    found.summary = "query vectors are the committed ones"
    found.summary += ", and the embeddings of the texts" if embedder is not None else ""
    _state_unembedded(context, found, anchored, plain)


def _state_unembedded(context: Context, found: Findings, anchored: int, plain: int) -> None:
    """Say of which records nobody here compared the query vector with the text."""
    closed = context.policy.query_text_disclosure == "none"
    why = "the policy discloses no texts" if closed else "the embedder is not at hand"
    if anchored:
        found.note(
            f"{anchored} records of anchored accounts: {why}; the promise fixed each query vector "
            "before the noise, and the account could check it"
        )
    # Not FAIL: nothing is false. Not PASS either: a plain account has no promise that fixed the
    # vector before the noise, so another one could have been asked in its name.
    if plain:
        found.downgrade(
            Status.NOT_ESTABLISHED,
            f"{why}: that the query vector is the embedding of what was asked (A1) is not "
            f"established for {plain} sampled records of plain accounts, nor for their others",
        )


def _embedder(context: Context, found: Findings) -> CommittedEmbedder | None:
    """The embedder at hand, if it is the committed one and texts are there to embed."""
    if context.embedder is None or context.policy.query_text_disclosure != "sampled":
        return None
    with found.attempt():
        if context.embedder.digest == context.opening.embedder_digest:
            return context.embedder
        # That says nothing of the provider: what was not compared stays NOT ESTABLISHED.
        found.note("the embedder at hand is not the committed one")
    return None


def _check_openings(context: Context, logged: LoggedRecord, response: Response) -> None:
    record, terms = logged.record, context.policy.estimator
    if salted(response.salt_e, int16_bytes(response.embedding)) != record.embedding_digest:
        raise RejectedError("another query vector than the committed one")
    # A longer vector has a larger sensitivity than the noise is for.
    norm = _squared_norm(response)
    if norm > SQUARED_NORM:
        raise RejectedError(f"squared norm {norm}", expected=f"at most {SQUARED_NORM}")
    if salted(response.salt_f, response.filter) != record.filter_digest:
        raise RejectedError("another filter than the committed one")
    # It would leave rows out of the selection that the argument is about.
    if response.filter:
        raise RejectedError("a filter, which the policy does not have")
    if salted(response.salt_s, response.sketch) != record.sketch_digest:
        raise RejectedError("another sketch than the committed one")
    if (
        sketch(np.array(response.embedding, dtype=np.int16), terms.seed, terms.sketch_bits)
        != response.sketch
    ):
        raise RejectedError("not the sketch of the query vector")


def _squared_norm(response: Response) -> int:
    return sum(entry * entry for entry in response.embedding)


def _check_text(context: Context, logged: LoggedRecord, response: Response) -> None:
    due = context.policy.query_text_disclosure == "sampled"
    # A text that the policy keeps closed is a leak, whoever asked for it.
    if (response.query is not None) != due:
        raise RejectedError("the text is missing" if due else "a text that the policy keeps closed")
    if response.query is None or response.salt_q is None:
        return
    if salted(response.salt_q, response.query) != logged.record.query_digest:
        raise RejectedError("another text than the committed one")


def _check_embedded(context: Context, embedder: CommittedEmbedder, response: Response) -> None:
    try:
        text = (response.query or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise RejectedError("the text is not UTF-8") from error
    recomputed = embedder.embed(text).astype(np.int64)
    committed = np.array(response.embedding, dtype=np.int64)
    if recomputed.shape != committed.shape:
        raise RejectedError(f"the embedder gives {recomputed.size} numbers")
    distance = int(np.sum((recomputed - committed) ** 2))
    # Floating point differs between machines: within the tolerance of the policy it is the same.
    if distance > context.policy.embedder_tolerance:
        raise RejectedError(
            f"the text's embedding is {distance} away",
            expected=f"at most {context.policy.embedder_tolerance}",
        )


def check_selection(context: Context, found: Findings) -> None:
    """19: what was selected is noise-then-select over the committed index."""
    batch: list[tuple[LoggedRecord, ProvenSelection]] = []
    proven = 0
    for logged, response in _responses(context, found):
        with found.attempt(logged.name):
            statement = _statement(context, logged, response)
            batch.append((logged, (statement, response.proof)))
            proven += 1
        if batch and len(batch) >= _batch_size(batch[-1][1]):
            _verify(context, found, batch)
            batch = []
    if batch:
        _verify(context, found, batch)
    found.summary = f"{proven} selection arguments verified, noise recomputed from the opened keys"


def _batch_size(last: ProvenSelection) -> int:
    """How many arguments like the last are verified at once."""
    statement, _ = last
    return min(_BATCH_RECORDS, _BATCH_VALUES // statement.rows + 1)


def _verify(
    context: Context, found: Findings, batch: Sequence[tuple[LoggedRecord, ProvenSelection]]
) -> None:
    try:
        context.engine.verify_selections([proven for _, proven in batch])
    except SelectionsRejected as error:
        # A bad argument does not hide the others of its batch.
        for position in error.failed:
            found.fault(
                "the selection argument does not hold for the committed index, query and noise",
                batch[position][0].name,
            )


def _statement(context: Context, logged: LoggedRecord, response: Response) -> SelectionStatement:
    """The statement of a record; MissingInput where another check owns that there is none."""
    record, policy = logged.record, context.policy
    tenant = context.registration(record.pseudonym).registration.tenant
    index = context.accepted_index(tenant)
    # Each of these is another check's fault: a proof about other inputs would fail here for it.
    if record.tenant != tenant:
        raise MissingInput("containment", f"{logged.name} names another tenant than its account's")
    if (record.policy_digest, record.window) != (policy.digest, policy.window):
        raise MissingInput("containment", f"{logged.name} names another policy or window")
    if record.version != 1:
        raise MissingInput("schedule", f"{logged.name}: there is no version {record.version}")
    if _squared_norm(response) > SQUARED_NORM:
        raise MissingInput("embedding", f"{logged.name}: the query vector is too long")
    randomness = context.randomness(record.activation)
    key = noise_key(
        response.key.key,
        window=record.window,
        tenant=record.tenant,
        version=record.version,
        pseudonym=record.pseudonym,
        epoch=record.epoch,
        slot=record.slot,
        counter=record.counter,
        activation_randomness=randomness,
        nonce=record.nonce or b"",
    )
    return SelectionStatement.of(
        record,
        body=logged.body,
        index_root=context.opened[tenant].index_root,
        commitments=index.commitments,
        seed_root=context.opening.seed_root,
        activation_randomness=randomness,
        query=np.array(response.embedding, dtype=np.int16),
        noise=context.engine.sample_noise(policy.sigma, key, index.rows),
    )
