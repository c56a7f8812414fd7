"""A small window from end to end in one process: a provider, its accounts, and a verifier.

`Window().evidence()` gives an honest window's items (docs/spec/10-verdict.md §10.1). A provider
that cheats is a subclass which overrides the step where it cheats; everything after that step
follows from it, so that what is wrong is that step and nothing else. Times are real Unix times of
a future window; nothing waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragaudit import core
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import sign
from ragaudit.lab.scenario.accounts import Asked
from ragaudit.lab.scenario.policy import (
    CHALLENGED,
    CLOSED,
    COUNTERSIGNED,
    DEADLINE_SECONDS,
    END,
    HANDED_OVER,
    START,
)
from ragaudit.lab.scenario.submitting import SubmittingWindow
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.accounts import AccountIndex, ListedRecord
from ragaudit.ledger.messages.challenge import (
    NO_KEY,
    Activation,
    Challenge,
    Countersignature,
    ReceiptsList,
    Response,
    Stratum,
    opening_digest,
    receipts_digest,
)
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.entries import Accounts, Close, Record, Registration
from ragaudit.ledger.messages.handover import Entry, write_handover
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.receipts import read_public_part
from ragaudit.privacy import sample as sampling
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import OwnGenerator
from ragaudit.verifier.procedure.logged import read_record


class Window(SubmittingWindow):
    """An honest window; see the module's description."""

    def close(self) -> None:
        """Log the close entry, dated at the window's end, and have the final root cosigned."""
        self.log_documents()
        if self.policy.account_index:
            self.log_accounts(self.account_index())
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", self.alter_close(body).encode())
        # Strictly before the sampling instant, or check 16 says that the root followed the sample.
        self.checkpoint(CLOSED - START)

    def log_documents(self) -> None:
        """Log what lists the documents of each tenant: here there is nothing."""

    def account_index(self) -> AccountIndex:
        """Return the index of all accounts and their records: a hook for cheats."""
        registered, records = [], []
        for position, (kind, salt, body) in enumerate(self.entries):
            if kind == Registration.KIND:
                registered.append(Registration.parse(body).pseudonym)
            elif kind == Record.KIND:
                records.append(ListedRecord(position, salt, Record.parse(body).pseudonym))
        return AccountIndex.build(self.window, registered, records)

    def log_accounts(self, index: AccountIndex) -> None:
        """Log the entry that commits to an account index: a hook for cheats.

        Args:
            index: of the log as it is now.
        """
        self.append(Accounts.KIND, index.entry.encode())

    def alter_close(self, body: Close) -> Close:
        """Return the close entry to log: a hook for cheats."""
        return body

    def play(self) -> None:
        """Play the whole window, up to the final checkpoint."""
        self.open()
        for event, *arguments in self.script():
            getattr(self, event)(*arguments)
        self.close()

    @property
    def generator(self) -> OwnGenerator | None:
        """The verifier's own language model: none where nothing is generated."""
        return None

    # --- the verifier ------------------------------------------------------------------------

    def countersignature(self) -> bytes:
        """Return a countersignature in time: 20 s before the first activation instant."""
        return self.countersigned_at(1000 * COUNTERSIGNED)

    def countersigned_at(self, time: int) -> bytes:
        """Return the verifier's countersignature of this opening (docs/spec/08-services.md §8.4).

        Args:
            time: Unix milliseconds; check 1 refuses one that is not before start and t_1.
        """
        _, salt, body = self.entries[0]
        return (
            Countersignature(
                window=self.window,
                policy_digest=self.policy.digest,
                opening_digest=opening_digest(salt, body),
                terms_digest=self.terms.digest,
                activation_anchor=chains.activation_anchor(
                    self.window, self.chain_seed, len(self.instants)
                ),
                time=time,
            )
            .signed(self.verifier_key)
            .encode()
        )

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        """Return the signed activation a as JSON (docs/spec/08-services.md §8.4).

        Args:
            a: 1..A-1.
            covered: covered_size(a).
        """
        return (
            Activation(
                window=self.window,
                a=a,
                preimage=self.preimage(a),
                covered_size=covered,
                time=self.released(a),
                round=self.round(a),
            )
            .signed(self.verifier_key)
            .to_json()
        )

    def receipts_list(self, receipts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the signed receipts list as JSON (docs/spec/08-services.md §8.4).

        Args:
            receipts: public parts as JSON; those of one identity at one index count once (§8.8).
        """
        read = [read_public_part(each) for each in receipts]
        listed = {(each.index, each.identity) for each in read}
        return (
            ReceiptsList(
                window=self.window,
                digest=receipts_digest(listed),
                count=len(listed),
                time=1000 * self.instants[-1] - 1,
            )
            .signed(self.verifier_key)
            .to_json()
        )

    def draw_sample(self, receipts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the strata with their samples as JSON (docs/spec/09-audit.md §9.1).

        Args:
            receipts: public parts that were submitted before the sampling instant.
        """
        drawn = sampling.draw_sample(
            self.logged(),
            tenants=self.policy.tenants,
            receipts={read_public_part(each).index for each in receipts},
            rule=self.policy.audit,
            seed=self.sampling_seed,
        )
        return shown_strata(drawn)

    @property
    def sampling_seed(self) -> bytes:
        """Return the seed of all samples of the window's final log, 32 bytes."""
        beacon = self.beacon(len(self.instants))
        return sampling.sampling_seed(self.tree.root(), self.chain_seed, beacon)

    def logged(self) -> list[sampling.LoggedRecord]:
        """Return the records of the entries as they are now, for the sample."""
        found = []
        for i, (kind, salt, body) in enumerate(self.entries):
            if kind == "record":
                record = read_record(Entry(i, kind, salt, body)).record
                found.append(sampling.LoggedRecord(i, record.tenant, record.pseudonym))
        return found

    def challenge(self, strata: list[dict[str, Any]], listed: dict[str, Any]) -> dict[str, Any]:
        """Return the signed challenge as JSON (docs/spec/08-services.md §8.4).

        Args:
            strata: of `draw_sample`.
            listed: of `receipts_list`.
        """
        return (
            Challenge(
                window=self.window,
                final_root=self.tree.root(),
                final_size=self.tree.size,
                preimage=self.chain_seed,
                receipts_list=ReceiptsList.from_json(listed),
                strata=tuple(Stratum.from_json(each, "strata") for each in strata),
                deadline=self.drawn() + 1000 * DEADLINE_SECONDS,
                round=self.round(len(self.instants)),
            )
            .signed(self.verifier_key)
            .to_json()
        )

    def sign_challenge(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sign a challenge as it is, also one that no verifier would write.

        Args:
            message: with or without a signature, which is replaced.
        """
        unsigned = {name: value for name, value in message.items() if name != "signature"}
        digest = hashlib.sha256(canonical_json.dumps(unsigned)).digest()
        signature = sign(self.verifier_key, "challenge", message["window"], digest)
        return {**unsigned, "signature": signature.hex()}

    # --- responses ---------------------------------------------------------------------------

    def open_key(self, asked: Asked) -> KeyOpening:
        """Return the opening of a record's noise key (docs/spec/05-records.md §5.5).

        The key is the one that was used. C_seed has no path for a slot, counter or epoch beyond the
        policy's: the paths are empty then, so that the check which owns that defect is reached.
        """
        if not self.policy.noised:
            return NO_KEY
        record = asked.record
        if (
            record.epoch != 1
            or record.slot >= self.slots
            or record.counter >= self.queries_per_account
        ):
            return KeyOpening(asked.key, (), ())
        return replace(self.seed_commitment.open(record.slot, record.counter), key=asked.key)

    def statement(self, asked: Asked) -> SelectionStatement:
        """Return the honest statement about a record, over the index that served it (§4.6.1)."""
        noised, index = self.policy.noised, self.index_of(asked).commitment
        return SelectionStatement.of(
            asked.record,
            body=asked.record.encode(),
            index_root=index.root,
            commitments=index.commitments,
            seed_root=self.seed_root_of(asked.record) if noised else None,
            activation_randomness=self.randomness(asked.record.activation) if noised else None,
            query=asked.embedding,
            noise=asked.noise,
            allowed=self.allowed(asked.record, asked.openings.filter),
            squared_norm=self.policy.squared_norm,
            keeps_ties=not noised,
        )

    def seed_root_of(self, record: Record) -> bytes:
        """Return the root of C_seed of a record's epoch: here there is one."""
        return self.seed_root

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        """Return the positions that may be served, of a filter and without null rows: here all.

        Args:
            record: whose version is searched.
            wanted: the filter's canonical text.
        """
        return None

    def prove(self, asked: Asked) -> bytes:
        """Return the selection argument of a record: a hook for cheats."""
        index = self.index_of(asked)
        return core.prove_selection(
            self.statement(asked),
            index.rows,
            index.blindings,
            asked.selected,
            asked.selection_blinding,
        )

    def response(self, asked: Asked) -> bytes:
        """Return the response to the challenge about one record (docs/spec/08-services.md §8.5)."""
        return self.respond(asked, self.open_key(asked), self.prove(asked))

    def respond(self, asked: Any, key: KeyOpening, proof: bytes) -> bytes:
        """Return a response with openings, embedding and place of what was asked and logged."""
        openings = asked.openings
        shown = self.policy.query_text_disclosure == "sampled"
        return Response(
            index=asked.index,
            key=key,
            salt_q=openings.salt_q if shown else None,
            query=openings.question.data if shown else None,
            salt_e=openings.salt_e,
            embedding=tuple(asked.embedding.tolist()),
            salt_f=openings.salt_f,
            filter=openings.filter.encode(),
            salt_s=openings.salt_s,
            sketch=openings.sketch,
            proof=proof,
        ).encode()

    # --- everything --------------------------------------------------------------------------

    def handover(self) -> bytes:
        """Return the handover of the entries as they are now, with the sketches of records."""
        return write_handover(
            Entry(i, kind, salt, body, *self.sketches.get(i, (b"", b"")))
            for i, (kind, salt, body) in enumerate(self.entries)
        )

    def handed_over(self) -> dict[str, bytes]:
        """Return the items that the verifier derives from a handover of the entries."""
        entries = [Entry(i, *entry).to_json() for i, entry in enumerate(self.entries)]
        others = [entry for entry in entries if entry["kind"] != "record"]
        return {
            names.RECORDS: self.handover(),
            names.LEAVES: b"".join(self.leaves()),
            names.ENTRIES: canonical_json.dumps(others),
        }

    def opened(self) -> dict[int, Any]:
        """Return what may be sampled, by its place in the log."""
        return {asked.index: asked for asked in self.asked}

    def items(self) -> dict[str, bytes]:
        """Play the window and return all items of its evidence (docs/spec/10-verdict.md §10.1).

        A window plays once: a second call logs everything again.
        """
        self.play()
        receipts, disputes = self.receipts(), self.disputes()
        listed = self.receipts_list(receipts)
        strata = self.draw_sample(receipts)
        challenge = self.challenge(strata, listed)
        sampled = Challenge.from_json(challenge).sampled
        by_index = self.opened()
        covered = self.covered_sizes()
        # The clock's item names one time of intake for each sampled record: half a second in.
        received = 1000 * CHALLENGED + 500
        dumps = canonical_json.dumps
        return {
            **self.opening_items(),
            **self.handed_over(),
            names.COUNTERSIGNATURE: self.countersignature(),
            names.ACTIVATIONS: dumps(
                [self.activation(a, size) for a, size in enumerate(covered, start=1)]
            ),
            names.RECEIPTS_LIST: dumps(listed),
            names.FINAL_CHECKPOINT: self.checkpoints[-1][2].encode(),
            names.CHECKPOINTS: dumps([note for _, _, note in self.checkpoints]),
            names.RECEIPTS: dumps(receipts),
            names.REFUSALS: dumps(self.refusals),
            names.CLOCK: Clock(
                dict.fromkeys(sampled, received), self.claimed, 1000 * CLOSED, 1000 * HANDED_OVER
            ).encode(),
            names.CLAIMS: dumps(self.claims),
            names.DISPUTES: dumps(disputes),
            names.JUDGED: dumps(self.judged()),
            names.STATEMENTS: dumps(self.statements()),
            names.CHALLENGE: dumps(challenge),
            **{names.response_name(i): self.response(by_index[i]) for i in sorted(sampled)},
        }

    def evidence_of_opening(self) -> Evidence:
        """Return what the verifier has before it countersigns; the window must be open."""
        return Evidence.of(self.opening_items())

    def evidence(self) -> Evidence:
        """Play the window and return its evidence; once, as `items`."""
        return Evidence.of(self.items())


def shown_strata(drawn: Iterable[sampling.DrawnStratum]) -> list[dict[str, Any]]:
    """Return drawn strata as the challenge shows them."""
    parts = ((each.stratum.id, each.stratum.population, each.sample) for each in drawn)
    return [Stratum.of(*each).to_json() for each in parts]
