"""What a policy asks of third parties (docs/spec/05-records.md §5.2): nobody of the audit is one.

Cosigners beside the verifier say that they saw the same log, time-stamping authorities when it
existed. What a missing word of theirs means is fixed before the window: the audit fails, or the
verdict says that it is missing.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log.tlog_policy import MAX_POLICY_BYTES, NO_QUORUM, TrustPolicy
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.policy_terms import PolicyKeys

REQUIRED: Final = "required"
REPORTED: Final = "reported"


def read_time_stamps(f: Fields) -> bool:
    """Return whether the audit fails without time stamps, of the policy's member ``time_stamps``.

    Args:
        f: the policy, with the member.

    Raises:
        MalformedPolicy: not such a member.
    """
    t = Fields(f.raw("time_stamps"), "demand", MalformedPolicy, "time_stamps")
    return t.choice("demand", REQUIRED, REPORTED) == REQUIRED


@dataclass(frozen=True, slots=True)
class CosignerTerms:
    """Further cosigners and their quorum, the member ``cosigners``.

    Attributes:
        required: whether the audit fails without the quorum; otherwise the verdict says so.
        trust: who they are; without logs and URLs.
    """

    required: bool
    trust: TrustPolicy

    @property
    def least(self) -> int:
        """How many cosigners at least sign what passes the audit; 0 where it only reports them."""
        return self.trust.least if self.required else 0

    def to_json(self) -> dict[str, Any]:
        """Return the member."""
        demand = REQUIRED if self.required else REPORTED
        return {"demand": demand, "trust": self.trust.encode().decode()}

    @classmethod
    def read(cls, f: Fields, keys: PolicyKeys) -> Self:
        """Return the terms among a policy's members.

        Args:
            f: the policy, with the member.
            keys: of the policy, none of which is a third party's.

        Raises:
            MalformedPolicy: not such terms, or a trust policy that asks for nothing.
        """
        c = Fields(f.raw("cosigners"), "demand trust", MalformedPolicy, "cosigners")
        text = c.text("trust", 1, MAX_POLICY_BYTES).encode()
        try:
            trust = TrustPolicy.parse(text)
        except MalformedError as error:
            raise c.error("trust", f"{error.where}: {error.what}", error.expected) from error
        # One spelling, so that its digest names it; where cosigners are asked is the provider's.
        if trust.named().encode() != text:
            raise c.error("trust", "not canonical", "no logs, URLs, comments")
        if trust.quorum == NO_QUORUM:
            raise c.error("trust", "no quorum", "the name of a witness or group")
        if any(key.public in keys.roles.values() for key in trust.keys):
            raise c.error("trust", "a key of the policy", "third parties' keys")
        return cls(c.choice("demand", REQUIRED, REPORTED) == REQUIRED, trust)
