"""A window with a generation channel whose accounts submit the receipts of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragaudit.lab.scenario.charging import Charged
from ragaudit.lab.scenario.generating import GeneratingWindow
from ragaudit.ledger.messages.entries import Generated
from ragaudit.ledger.messages.generated import (
    GeneratedFile,
    GeneratedPrivate,
    GeneratedReceipt,
    GenerationRequest,
    LoggedEntry,
)


class SubmittedAnswers(GeneratingWindow):
    """Every generated answer has its receipt at the verifier, beside those of records."""

    def receipts(self) -> list[dict[str, Any]]:
        words = [self.words_receipt(one) for one in self.charged if one.reply is not None]
        return [*super().receipts(), *(each.to_json() for each in words)]

    def words_file(self, asked: Charged) -> GeneratedFile:
        """Return the file of an answer, without proofs: a hook for cheats."""
        assert asked.reply is not None
        charge, answer = self.logged_entry(asked.index), self.logged_entry(self.answer_of(asked))
        return self.sign_file(asked, charge, answer, asked.reply.time + 1)

    def words_receipt(self, asked: Charged) -> GeneratedReceipt:
        """Return the public part of an answer, with both proofs: a hook for cheats.

        Args:
            asked: a charged question that was answered.
        """
        public = self.words_file(asked).public
        places = public.charge.index, public.answer.index
        return public.with_proofs(*map(self.proof_for, places))

    def sign_receipt(
        self, asked: Charged, charge: LoggedEntry, answer: LoggedEntry, issued: int
    ) -> GeneratedReceipt:
        """Return the public part over two entries, without proofs.

        Args:
            asked: whose question, answer and openings it binds.
            issued: Unix milliseconds.
        """
        return self.sign_file(asked, charge, answer, issued).public

    def sign_file(
        self, asked: Charged, charge: LoggedEntry, answer: LoggedEntry, issued: int
    ) -> GeneratedFile:
        """Return the whole file, without proofs; arguments as of `sign_receipt`."""
        assert asked.answer is not None
        assert asked.reply is not None
        counter = None if asked.reply.nonce is None else asked.charge.counter
        return GeneratedFile.issue(
            self.provider_key,
            origin=self.origin,
            charge=charge,
            answered=answer,
            issued=issued,
            request=GenerationRequest(asked.request.query, asked.request.filter, counter),
            answer=asked.answer,
            private=GeneratedPrivate(asked.openings, asked.salt_a),
        )

    def answer_of(self, asked: Charged) -> int:
        """Return the place of the answer to a charge."""
        assert asked.reply is not None
        body = asked.reply.encode()
        found: Sequence[int] = [
            place
            for place, (kind, _, data) in enumerate(self.entries)
            if kind == Generated.KIND and data == body
        ]
        return found[0]

    def logged_entry(self, place: int) -> LoggedEntry:
        """Return an entry of the log without a proof."""
        _, salt, body = self.entries[place]
        return LoggedEntry(place, salt, body)
