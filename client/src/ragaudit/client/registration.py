"""The account's place in a window: its registration, checked against the log."""

from dataclasses import dataclass, field
from typing import Any

from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.client.window import Window
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.receipt_check import AccountView
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_SLOTS, MAX_TIME, Registration

__all__ = ["AccountState", "RegistrationEntry", "parse_account"]

MAX_BODY_BYTES = 4096


@dataclass(frozen=True)
class RegistrationEntry:
    """The log entry of a registration, its proof if there is one yet."""

    index: int
    salt: bytes = field(repr=False)
    body: bytes
    proof: str | None

    def verify(self, window: Window, expected: Registration) -> bool:
        """Check the entry; return whether its inclusion could be checked too.

        Raises:
            AnswerRejected: it says something else of this account, or is not in the log.
        """
        try:
            found = Registration.decode(self.body)
            for name in ("window", "pseudonym", "tenant", "slot", "anchor", "dispute_key"):
                if getattr(found, name) != getattr(expected, name):
                    raise AnswerRejected("another one", where=f"registration, {name}")
            return self._verify_inclusion(window)
        except AnswerRejected:
            raise
        except RagauditError as error:
            raise AnswerRejected(error.what, where=f"registration, {error.where}") from error

    def _verify_inclusion(self, window: Window) -> bool:
        if self.proof is None:
            return False
        keys = window.view.policy.keys
        proof = TlogProof.parse(self.proof.encode())
        if proof.index != self.index:
            raise AnswerRejected(f"a proof of leaf {proof.index}", where="registration")
        leaf = leaf_hash(leaf_data(self.salt, Registration.KIND, self.body))
        cosigners = CosignerPolicy((keys.cosigner,), 1)
        verify_tlog_proof(proof, leaf=leaf, log_key=keys.log, cosigners=cosigners)
        return True

    def check_activated(self, window: Window, now: int) -> None:
        """Return if the registration is activated by what the verifier has released.

        Args:
            now: Unix milliseconds.

        Raises:
            StateConflict: no instant released so far activates it; it names the next one.
        """
        if activation_of(self.index, window.view.covered_sizes) is None:
            activating = window.view.policy.activation_instants[:-1]
            raise StateConflict(
                "the registration is not activated",
                where=window.name,
                expected="registration before an activation instant of the policy",
                next_instant=next((each for each in activating if 1000 * each > now), None),
            )


@dataclass(frozen=True)
class AccountState:
    """`GET /v1/windows/{w}/account`; slot and registration are None before registration.

    Attributes:
        shown: the reply itself.
    """

    tenant: str
    pseudonym: bytes
    slot: int | None
    anchor: bytes | None
    dispute_key: bytes | None
    counter: int
    remaining: int
    registration: RegistrationEntry | None
    shown: dict[str, Any] = field(repr=False, compare=False)

    def view(self, counter: int | None) -> AccountView:
        """What a record of this account must say."""
        index = None if self.registration is None else self.registration.index
        return AccountView(self.tenant, self.pseudonym, self.slot, index, counter)

    def expected(self, window: Window) -> Registration:
        """The registration that the log must hold; its time is the provider's."""
        if self.slot is None:
            raise StateConflict("the account is not registered", where=window.name)
        return Registration(
            window=window.name,
            pseudonym=self.pseudonym,
            tenant=self.tenant,
            slot=self.slot,
            anchor=self.anchor,
            dispute_key=self.dispute_key,
            time=0,
        )


def parse_account(value: Any) -> AccountState:
    """Return the account's state; MalformedRecord if it is none."""
    names = "tenant pseudonym slot anchor dispute_key counter remaining registration"
    f = Fields(value, names, MalformedRecord, "account")
    slot = None if f.raw("slot") is None else f.integer("slot", 0, MAX_SLOTS - 1)
    return AccountState(
        tenant=f.text("tenant", 1, 64),
        pseudonym=f.hex("pseudonym", 32),
        slot=slot,
        anchor=None if f.raw("anchor") is None else f.hex("anchor", 32),
        dispute_key=None if f.raw("dispute_key") is None else f.hex("dispute_key", 32),
        counter=f.integer("counter", 0, MAX_QUERIES),
        remaining=f.integer("remaining", 0, MAX_QUERIES),
        registration=_entry(f.raw("registration")),
        shown=value,
    )


def _entry(value: Any) -> RegistrationEntry | None:
    if value is None:
        return None
    f = Fields(value, "index salt body proof", MalformedRecord, "account.registration")
    return RegistrationEntry(
        index=f.integer("index", 1, MAX_TIME),
        salt=f.hex("salt", 32),
        body=f.hex("body", limit=MAX_BODY_BYTES),
        proof=None if f.raw("proof") is None else f.text("proof", 1, MAX_PROOF_BYTES),
    )
