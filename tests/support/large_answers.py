"""A window of any length whose answers are all generated, made without proofs.

Every question is a charge entry and its answer, so that no entry of the log is a record. Nothing is
charged to rows (NAIVE): there is no argument to make.
"""

from pathlib import Path
from typing import Any, Final

from generation_messages import GENERATION
from ragaudit.encoding import canonical_json
from ragaudit.lab.bench.log import LargeLog, LargeLogSizes, write_evidence
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Charge, Generated
from ragaudit.verifier.procedure.facts import Pins

__all__ = ["write_large_answers"]

_TERMS: Final[dict[str, Any]] = {
    **GENERATION,
    "mechanism": "naive",
    "answerer": {**GENERATION["answerer"], "slots_per_voter": 1, "tokens": 4},
    "epsilon": "2",
    "uses": 2**16,
    "threshold": None,
    "replay": None,
}


class _LargeWords(LargeLog):
    """The window; its sample is empty, so that no response is asked for."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "generation": _TERMS}

    def _answer(self, number: int, time: int) -> None:
        """Log a charge entry and its answer."""
        draw = self._random.randbytes
        account = self.registered[number % self.sizes.accounts]
        charge = Charge(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=account.tenant,
            version=1,
            rows=self.indices[account.tenant].commitment.rows,
            filter_digest=draw(32),
            pseudonym=account.pseudonym,
            epoch=1,
            slot=account.slot,
            counter=number // self.sizes.accounts,
            activation=1,
            time=time,
            query_digest=draw(32),
            embedding_digest=draw(32),
            sketch_digest=draw(32),
            number=number,
            threshold=None,
            charge=None,
        )
        place = self.append(Charge.KIND, charge.encode())
        answer = Generated(self.window, account.tenant, place, time, None, draw(32))
        self.append(Generated.KIND, answer.encode())

    def written_items(self) -> dict[str, bytes]:
        listed = self.receipts_list(())
        challenge = canonical_json.dumps(self.challenge([], listed))
        return {**super().written_items(), names.CHALLENGE: challenge}


def write_large_answers(sizes: LargeLogSizes, folder: Path) -> Pins:
    """Write the evidence of a window whose answers are generated.

    Args:
        sizes: how many questions, of how many accounts; each is two entries of the log.
        folder: an empty one, for the items by their names.

    Returns:
        The keys that whoever audits has pinned.
    """
    window = _LargeWords(sizes, folder)
    write_evidence(window, folder)
    return window.pins
