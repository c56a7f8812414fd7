"""What was fixed before the window: policy, opening, index commitments."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragaudit.circuits.statements import IndexStatement
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.countersignature import Countersignature, opening_digest
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, TenantOpening
from ragaudit.verifier import evidence as items
from ragaudit.verifier.procedure.facts import MissingInput, fact
from ragaudit.verifier.procedure.inputs import Inputs
from ragaudit.verifier.terms import Terms


@dataclass(frozen=True, slots=True)
class PreviousWindow:
    """A window as the verifier holds it: keys, and final checkpoint (None before the close)."""

    log: VerifierKey
    cosigner: VerifierKey
    final: bytes | None

    def head(self, note: bytes) -> TreeHead:
        """Return the head of a checkpoint of its log.

        Raises:
            RagauditError: not a checkpoint that log and cosigner signed.
        """
        cosigners = CosignerPolicy((self.cosigner,), 1)
        return verify_cosigned(note, self.log, cosigners).signed.head


class OpeningFacts(Inputs):
    """Facts that checks 1, 3 and 4 own."""

    # --- 1: policy ------------------------------------------------------------------------

    @fact("policy")
    def policy(self) -> Policy:
        """The parsed policy."""
        return Policy.parse(self.item(items.POLICY, "policy"))

    @fact("policy")
    def policy_digest(self) -> bytes:
        """C_policy."""
        return self.policy.digest

    @fact("policy")
    def tenants(self) -> frozenset[str]:
        """The policy's tenants."""
        return frozenset(self.policy.tenants)

    @fact("policy")
    def countersignature(self) -> Countersignature:
        """The verifier's countersignature, its signature checked."""
        found = Countersignature.parse(self.item(items.COUNTERSIGNATURE, "policy"))
        found.verify(self.policy.keys.verifier)
        return found

    @fact("policy")
    def terms(self) -> Terms:
        """The verifier's terms; after the countersignature, those that it names."""
        found = Terms.parse(self.item(items.TERMS, "policy"))
        if self.now is None and found.digest != self.countersignature.terms_digest:
            raise RejectedError("other terms than were countersigned", where=items.TERMS)
        return found

    @fact("policy")
    def previous(self) -> PreviousWindow:
        """What the verifier holds of the window whose final checkpoint the policy names."""
        if items.PREVIOUS not in self.evidence:
            raise RejectedError("of a window that this verifier does not know")
        match self.json(items.PREVIOUS, "policy"):
            case {
                "log": str(log),
                "cosigner": str(cosigner),
                "final_checkpoint": str() | None as final,
                **more,
            } if not more:
                keys = VerifierKey.parse(log), VerifierKey.parse(cosigner)
                return PreviousWindow(*keys, None if final is None else final.encode())
        raise MalformedError("not a window before", where=items.PREVIOUS)

    @property
    def cosigners(self) -> CosignerPolicy:
        """The one cosigner of the policy."""
        return CosignerPolicy((self.policy.keys.cosigner,), 1)

    # --- 3, 4: commitments and index arguments ----------------------------------------------

    @fact("commitments")
    def opening_parts(self) -> tuple[bytes, bytes]:
        """(salt, body) of the opening as it was countersigned."""
        match self.json(items.OPENING, "commitments"):
            case {"salt": str(salt), "body": str(body), **more} if not more:
                return hex_decode(salt, 32), hex_decode(body)
        raise MalformedError("not an opening", where=items.OPENING, expected="salt and body")

    @fact("commitments")
    def opening_digest(self) -> bytes:
        """What a countersignature of this opening names."""
        return opening_digest(*self.opening_parts)

    @fact("commitments")
    def opening(self) -> Opening:
        """The opening entry's body."""
        return Opening.decode(self.opening_parts[1])

    @fact("commitments")
    def opened(self) -> Mapping[str, TenantOpening]:
        """What the opening says of each tenant."""
        return {each.tenant: each for each in self.opening.tenants}

    @fact("commitments")
    def embedder_digest(self) -> bytes:
        """C_emb of the manifest at hand, which is for the policy's dimension."""
        manifest = self.item(items.EMBEDDER, "commitments")
        value = canonical_json.loads(manifest)
        if not isinstance(value, dict) or value.get("format") != "ragaudit/v1/embedder":
            raise MalformedError("not an embedder's manifest", where=items.EMBEDDER)
        if value.get("dimension") != self.policy.dimension:
            raise RejectedError(
                "embedder of another dimension", expected=str(self.policy.dimension)
            )
        return structure("embedder", manifest)

    def index(self, tenant: str) -> IndexCommitment:
        """Return the tenant's index commitment, as the opening names it.

        Raises:
            MissingInput: `commitments` without one that can be read.
        """
        if tenant not in self.tenants:
            raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
        if tenant not in self._indices:
            try:
                self._indices[tenant] = self._read_index(tenant)
            except MissingInput as missing:
                self._indices[tenant] = missing
            except RagauditError as error:
                self._indices[tenant] = MissingInput("commitments", f"index of {tenant}: {error}")
        found = self._indices[tenant]
        if isinstance(found, MissingInput):
            raise MissingInput(found.owner, found.reason)
        return found

    def _read_index(self, tenant: str) -> IndexCommitment:
        data = self.item(items.index_name(tenant), "commitments")
        found, named = IndexCommitment.decode(data), self.opening.tenant(tenant)
        policy = self.policy
        place = (found.window, found.tenant, found.version, found.dimension)
        if place != (policy.window, tenant, 1, policy.dimension):
            raise RejectedError(
                f"of {place}", expected=f"{(policy.window, tenant, 1, policy.dimension)}"
            )
        if found.rows != named.rows:
            raise RejectedError(f"{found.rows} rows uploaded, {named.rows} in the opening")
        if found.root != named.index_root:
            raise RejectedError("root is not the opening's", expected=named.index_root.hex())
        if found.proof_digest != named.proof_digest:
            raise RejectedError("proof is not the opening's", expected=named.proof_digest.hex())
        return found

    def accepted_index(self, tenant: str) -> IndexCommitment:
        """Return the tenant's index with its argument verified.

        Raises:
            MissingInput: `index-proof` where it does not hold, `commitments` without an index.
        """
        index = self.index(tenant)
        if tenant not in self._accepted:
            self._accepted[tenant] = self._judge_index(index)
        missing = self._accepted[tenant]
        if missing is not None:
            raise MissingInput(missing.owner, missing.reason)
        return index

    def _judge_index(self, index: IndexCommitment) -> MissingInput | None:
        statement = IndexStatement.of(
            policy_digest=self.policy_digest,
            window=index.window,
            tenant=index.tenant,
            version=index.version,
            index_root=index.root,
            dimension=index.dimension,
            commitments=index.commitments,
        )
        try:
            self.engine.verify_index(statement, index.proof)
        except RejectedError as error:
            return MissingInput("index-proof", f"index of {index.tenant}: {error.what}")
        return None
