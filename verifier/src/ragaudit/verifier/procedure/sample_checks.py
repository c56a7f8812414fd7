"""Checks 16 to 19: the sample, the noise keys of its records, what was asked, and selections."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from ragaudit.circuits.noise import NOISE_TAG, noise_key
from ragaudit.circuits.quantise import quantise
from ragaudit.circuits.selection import ColumnArrays
from ragaudit.circuits.sketch import sketch
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import (
    MalformedError,
    RagauditError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.challenge import Response, Stratum, receipts_digest
from ragaudit.ledger.messages.commitments import verify_key_opening
from ragaudit.ledger.messages.entries import Charge, Record
from ragaudit.ledger.messages.filters import Filter, request_filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.requests import Question, float32_values, int16_bytes
from ragaudit.ledger.messages.verdict import Status
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.sample import draw_charges, draw_rows
from ragaudit.verifier.engines import ProvenSelection, SelectionsRejected
from ragaudit.verifier.models import CommittedEmbedder
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.logged import Logged, LoggedRecord


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
            whole=policy.generation.charges.prove == "all",
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
    opened: list[LoggedRecord | Logged[Charge]] = [
        *context.challenged,
        *context.challenged_charges,
    ]
    for logged in opened:
        with found.attempt(logged.name):
            context.response(logged)
            if logged.entry not in received:
                raise RejectedError("no time of its answer is known")
            # Late is as bad as never: the provider must not gain time to look for a way out.
            if received[logged.entry] > deadline:
                time = rfc3339(received[logged.entry])
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
            record = logged.body
            check_key(context, record, response)
            # One key for two records gives one noise twice: the difference of their scores is bare.
            place = (record.epoch, record.slot, record.counter)
            if places.setdefault(response.key.key, place) != place:
                raise RejectedError("the key of another record was committed again")
    found.summary = f"{len(places)} noise keys opened, each as committed"


def check_key(context: Context, query: Record | Charge, response: Response) -> None:
    """Check that the opened key is the committed one of the query's place.

    Raises:
        RejectedError: it is not.
    """
    policy = context.policy
    verify_key_opening(
        root=context.seed_root(query.epoch),
        epoch=query.epoch,
        slot=query.slot,
        counter=query.counter,
        slots=policy.slots,
        queries=policy.queries_per_account,
        opening=response.key,
    )


def drawn_key(
    context: Context,
    query: Record | Charge,
    response: Response,
    nonce: bytes | None,
    tag: str = NOISE_TAG,
) -> bytes:
    """Return the key of a query's noise, or coins, from its opened key and what is mixed in.

    Args:
        nonce: of an anchored account.
        tag: as of `noise_key`.

    Raises:
        MissingInput: as `Context.randomness`.
    """
    return noise_key(
        response.key.key,
        window=query.window,
        tenant=query.tenant,
        version=query.version,
        pseudonym=query.pseudonym,
        epoch=query.epoch,
        slot=query.slot,
        counter=query.counter,
        activation_randomness=context.randomness(query.activation),
        nonce=nonce or b"",
        tag=tag,
    )


def _check_place(context: Context, logged: LoggedRecord) -> None:
    """MissingInput unless C_seed has a place for the record at all: each number has its check."""
    record, policy = logged.body, context.policy
    # NOT RUN and not FAIL: no opening is right where the committed tree has no place.
    _ = context.seed_root(record.epoch)
    # Beyond the limit there is no key in the tree: that there is such a query is check 8's.
    if record.counter >= policy.queries_per_account:
        raise MissingInput("counters", f"{logged.name}: there is no key for query {record.counter}")
    if record.slot >= policy.slots:
        registered = context.registration(record.pseudonym).slot
        owner = "registrations" if record.slot == registered else "counters"
        raise MissingInput(owner, f"{logged.name}: there is no slot {record.slot}")


# Records of one index share most of a batch's work, but the noise of all of them is in memory:
# at most about 2^26 values of eight bytes, at least one record.
_BATCH_VALUES: Final = 2**26


def check_embedding(context: Context, found: Findings) -> None:
    """18: the query vector is the committed one and short; of the text, where it is due."""
    embedder = question_embedder(context, found)
    plain = anchored = 0
    for logged, response in responses(context, found):
        with found.attempt(logged.name):
            check_openings(context, logged.body, response)
        compared = True
        with found.attempt(logged.name):
            compared = check_question(context, embedder, logged.body, response)
        if not compared:
            is_anchored = logged.body.pseudonym in context.anchored
            anchored += is_anchored
            plain += not is_anchored
    found.summary = "query vectors are the committed ones"
    found.summary += ", and the embeddings of the texts" if embedder is not None else ""
    if "vector" in context.policy.retrieval.query_kinds:
        found.summary += "; those that accounts sent are rounded as specified"
    _state_unembedded(context, found, anchored, plain)


def _state_unembedded(context: Context, found: Findings, anchored: int, plain: int) -> None:
    """Say of which records nobody here compared the query vector with the text."""
    closed = context.policy.query_text_disclosure == "none"
    why = "the policy discloses no texts" if closed else "no embedder at hand compared the text"
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


def question_embedder(context: Context, found: Findings) -> CommittedEmbedder | None:
    """Return the embedder at hand, if it is the committed one and questions are there to embed."""
    closed = context.policy.query_text_disclosure != "sampled"
    return None if closed else embedder_at_hand(context, found)


def embedder_at_hand(context: Context, found: Findings) -> CommittedEmbedder | None:
    """Return the embedder at hand, if it is the committed one; None otherwise.

    Args:
        found: of the check that asks; gets a note of another embedder.
    """
    if context.embedder is None:
        return None
    with found.attempt():
        if context.embedder.digest == context.opening.embedder_digest:
            return context.embedder
        # That says nothing of the provider: what was not compared stays NOT ESTABLISHED.
        found.note("the embedder at hand is not the committed one")
    return None


def check_openings(context: Context, record: Record | Charge, response: Response) -> None:
    """Check that vector, filter and sketch are the committed ones, and fit each other.

    Raises:
        RejectedError: they do not.
    """
    terms = context.policy.estimator
    if salted(response.salt_e, int16_bytes(response.embedding)) != record.embedding_digest:
        raise RejectedError("another query vector than the committed one")
    # A longer vector has a larger sensitivity than the noise is for, and scores beyond the proof's.
    norm, most = _squared_norm(response), context.policy.squared_norm
    if norm > most:
        raise RejectedError(f"squared norm {norm}", expected=f"at most {most}")
    if salted(response.salt_f, response.filter) != record.filter_digest:
        raise RejectedError("another filter than the committed one")
    filter_of(response, context.policy)
    if salted(response.salt_s, response.sketch) != record.sketch_digest:
        raise RejectedError("another sketch than the committed one")
    if (
        sketch(np.array(response.embedding, dtype=np.int16), terms.seed, terms.sketch_bits)
        != response.sketch
    ):
        raise RejectedError("not the sketch of the query vector")


def _squared_norm(response: Response) -> int:
    return sum(entry * entry for entry in response.embedding)


def filter_of(response: Response, policy: Policy) -> Filter:
    """Return the filter that was opened; RejectedError where the policy has no such."""
    # A filter outside the grammar would leave rows out of the selection by a rule nobody has.
    try:
        return request_filter(response.filter.decode(), policy)
    except (MalformedError, UnsupportedError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, RagauditError) else "not UTF-8"
        raise RejectedError(f"a filter, which the policy does not have: {what}") from error


def check_question(
    context: Context,
    embedder: CommittedEmbedder | None,
    record: Record | Charge,
    response: Response,
) -> bool:
    """Check what was asked; return whether the query vector was compared with it.

    Args:
        embedder: of `question_embedder`.

    Raises:
        RejectedError: the vector is not that of what was asked.
    """
    _check_disclosed(context, record, response)
    if response.query is None:
        return False
    question = Question.parse(response.query, context.policy)
    if question.vector:
        _check_quantised(context, question, response)
        return True
    if embedder is None:
        return False
    try:
        _check_embedded(context, embedder, question, response)
    except UnavailableError:
        # A service of the verifier's that does not answer accuses nobody, and establishes nothing.
        return False
    return True


def _check_quantised(context: Context, question: Question, response: Response) -> None:
    """RejectedError unless e is what the vector rounds to: exactly, on every machine (2.1)."""
    values = np.array(float32_values(question.vector), dtype=np.float32)
    if tuple(quantise(values, context.policy.norm_bound).tolist()) != response.embedding:
        raise RejectedError("the query vector is not what the vector sent rounds to")


def _check_disclosed(context: Context, record: Record | Charge, response: Response) -> None:
    due = context.policy.query_text_disclosure == "sampled"
    # A text that the policy keeps closed is a leak, whoever asked for it.
    if (response.query is not None) != due:
        raise RejectedError("the text is missing" if due else "a text that the policy keeps closed")
    if response.query is None or response.salt_q is None:
        return
    if salted(response.salt_q, response.query) != record.query_digest:
        raise RejectedError("another text than the committed one")


def _check_embedded(
    context: Context, embedder: CommittedEmbedder, question: Question, response: Response
) -> None:
    recomputed = embedder.embed(question.text, context.policy.norm_bound).astype(np.int64)
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
    for logged, response in responses(context, found):
        with found.attempt(logged.name):
            statement = _statement(context, logged, response)
            batch.append((logged, (statement, response.proof)))
            proven += 1
        if batch and len(batch) >= _batch_size(context, batch[-1][1]):
            _verify(context, found, batch)
            batch = []
    if batch:
        _verify(context, found, batch)
    how = "ties kept, no noise" if context.unnoised else "noise recomputed from the opened keys"
    found.summary = f"{proven} selection arguments verified, {how}"


def _batch_size(context: Context, last: ProvenSelection) -> int:
    """How many arguments like the last are verified at once."""
    statement, _ = last
    return min(context.engine.batch_records, _BATCH_VALUES // statement.rows + 1)


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
    record, policy = logged.body, context.policy
    tenant = context.registration(record.pseudonym).tenant
    index = context.accepted_index(tenant, record.version)
    # Each of these is another check's fault: a proof about other inputs would fail here for it.
    if record.tenant != tenant:
        raise MissingInput("containment", f"{logged.name} names another tenant than its account's")
    if (record.policy_digest, record.window) != (policy.digest, policy.window):
        raise MissingInput("containment", f"{logged.name} names another policy or window")
    if _squared_norm(response) > policy.squared_norm:
        raise MissingInput("embedding", f"{logged.name}: the query vector is too long")
    allowed = _allowed(context, logged, response, context.column_arrays(tenant, record.version))
    query = np.array(response.embedding, dtype=np.int16)
    index_root = context.stated_index(tenant, record.version).index_root
    if not policy.noised:
        return SelectionStatement.of(
            record,
            body=logged.data,
            index_root=index_root,
            commitments=index.commitments,
            seed_root=None,
            activation_randomness=None,
            query=query,
            noise=np.zeros(index.rows, dtype=np.int64),
            allowed=allowed,
            squared_norm=policy.squared_norm,
            keeps_ties=True,
        )
    randomness = context.randomness(record.activation)
    key = drawn_key(context, record, response, record.nonce)
    return SelectionStatement.of(
        record,
        body=logged.data,
        index_root=index_root,
        commitments=index.commitments,
        seed_root=context.seed_root(record.epoch),
        activation_randomness=randomness,
        query=query,
        # For all rows, whatever the filter allows: z does not depend on it.
        noise=context.engine.sample_noise(policy.sigma, key, index.rows),
        allowed=allowed,
        squared_norm=policy.squared_norm,
    )


def _allowed(
    context: Context,
    logged: LoggedRecord,
    response: Response,
    columns: ColumnArrays,
) -> Sequence[int] | None:
    """Positions of live rows that pass the record's filter; None for all of the index.

    Raises:
        MissingInput: `embedding` owns that the filter cannot be read.
    """
    try:
        chosen = filter_of(response, context.policy)
    except RejectedError as error:
        raise MissingInput("embedding", f"{logged.name}: {error}") from error
    return chosen.allowed_in(columns)
