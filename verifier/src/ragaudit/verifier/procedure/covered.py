"""What a verdict does not cover, and what it assumes, in the words of docs/spec 10.4.

Reports, services and commands show these texts, or those of a signed verdict; there is no second
copy in code.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ragaudit.ledger.messages.policy import Policy

_UNCHECKED: Final = (
    "Answers whose account never checked its receipt: only the account can compare what it was "
    "given with what was committed. Answers to an account that registered no dispute key: nobody "
    "can have them judged."
)

NOT_COVERED: Final = (
    "The texts of returned documents and the generated answer: the guarantee is about which "
    "positions are selected. Whoever reads a document's text has read it, whatever the noise was.",
    "Other windows: each has its own budget, and the same documents are exposed again in each. "
    "Over w windows alike, the privacy loss grows about with the square root of w.",
    "Coalitions of more accounts than the policy plans for, and coalitions that evade the "
    "estimator: accounts that agree to ask different questions about the same document do not look "
    "alike. The value for all records of a tenant needs no estimate.",
    _UNCHECKED,
    "That one person has one account, that no document owns more rows than the policy says, and "
    "which documents a tenant's index holds: this is the provider's word.",
)

OWNED: Final = (
    "That one person has one account, and that no document owns more rows than the policy says: "
    "this is the provider's word. Which documents a tenant's index holds is so too for everybody "
    "but the owner of the tenant's documents, who can check with proofs of its own which of them "
    "are there as they were given, and since when one is gone."
)
"""In place of the fifth, where owners can check."""

HIDDEN: Final = (
    "Coalitions of more accounts than the policy plans for, and coalitions that evade the "
    "estimator: accounts that each spend less than a tenth of their questions on the same document "
    "need not count, and a strong common interest of others can cover a plan. The value for all "
    "records of a tenant needs no estimate."
)
"""In place of the third, where the estimate is by direction."""

UNOWNED: Final = (
    "Which accounts belong to which tenant: no owner of a tenant countersigned its index or its "
    "registrations, so that is the provider's word."
)

UNOWNED_ROWS: Final = (
    "Which accounts belong to which tenant: no owner of a tenant countersigned its registrations, "
    "so that is the provider's word. What its index holds, the owner can check with proofs of its "
    "own."
)
"""In place of it, where owners can check."""

DISPUTED: Final = (
    "Disputes that nobody judged: the account showed no receipt file after the sample was drawn, "
    "or its record was sampled, when no verifier may see the file, and no arbiter found anything."
)

UNSAMPLED: Final = (
    "Records outside the sample: what is stated about them is a compliance rate, not an (epsilon, "
    "delta) guarantee. One record without noise can expose a document completely, and a sample can "
    "miss it."
)

PLAIN: Final = (
    "What plain accounts were made to ask: for them the provider could still refuse, delay past "
    "an activation instant, log queries of its own in their name, or serve them under another "
    "pseudonym that it had registered before. An account counts as plain unless it showed the "
    "chain of its registration."
)

SHOWN: Final = (
    "Whose chain an anchored account's is: the account counts as anchored because a statement "
    "signed with the dispute key of its registration reached the verifier. That this key is the "
    "account's, the account checks when it registers; for one that does not look, it is the "
    "provider's word. A provider that registers accounts of its own holds their chains and keys, "
    "and can reach any share so: the anchored share is claimed."
)

ASSUMPTIONS: Final = (
    "Discrete logarithms in ristretto255 and collisions of SHA-256 are out of reach, and hash "
    "functions behave like random oracles.",
    "ChaCha20 keyed through HMAC-SHA-256 is indistinguishable from random: epsilon is a "
    "computational one. Each noise sample is then within the distance gamma of its exact law.",
    "Neighbouring indexes have the same number of rows and the same public columns.",
    "The verifier drew its activation chain at random, kept it secret until each instant, and does "
    "not collude with the provider or with accounts.",
    "The beacon is none: the verifier alone supplies the unpredictability of noise and sample.",
    "Nothing that is committed to before the window depends on single documents: no model for "
    "questions or answers, nothing that made the vectors of the index, no prompt, threshold or "
    "stop word. A model that was trained on documents tells them for nothing, and passes every "
    "check.",
)


COLUMNS: Final = (
    "Public columns: they stand in clear in the index that the verifier holds, nothing protects "
    "them, and a filter on them tells which rows may be selected."
)

VERSIONS: Final = (
    "What changed between two versions of an index, and why: each version is committed, proven and "
    "logged before it is used; what it holds is the provider's word."
)

EPOCHS: Final = (
    "What was lost before a restore: answers that no checkpoint covered, and of which no account "
    "sent a receipt or a claim, are in no log."
)

UNLOGGED: Final = (
    "Generated answers that are in no log, and of which no account sent a receipt: documents pay "
    "for no answer that was given beside the log."
)

RENEWED: Final = (
    "Other windows of the generation channel: the budgets of documents are renewed in each. Over w "
    "windows alike its privacy loss is w times as large, not the square root."
)

VOIDED: Final = (
    "Void charges: who left them without an answer, and why. Documents paid for them as for "
    "answers, and one whose uses went to them answers no more. For plain accounts the provider "
    "knew documents and coins when it chose which to void: that there is no answer can tell what "
    "an answer may not."
)

NO_PRIVACY: Final = (
    "Privacy: no noise was added and no epsilon is claimed. Answers show what the documents hold, "
    "and how near each is to the question, to whoever may ask."
)

GENERATED: Final = (
    "The generated answer: what is established is which rows were selected. What a model makes of "
    "their texts is not."
)

ROUNDING: Final = (
    "Floating-point rankings: exact means exact over the committed integers. Rows whose scores "
    "differ by less than the rounding of their vectors may stand in another order in the store's "
    "own search."
)

DOCUMENTS: Final = (
    "Which documents a tenant's index holds: this is the provider's word. That nobody changed them "
    "unseen within the window is established."
)

OWNED_DOCUMENTS: Final = (
    "Which documents a tenant's index holds: this is the provider's word for everybody but the "
    "owner of the tenant's documents, who can check with proofs of its own which of them are there "
    "as they were given, and since when one is gone. That nobody changed them unseen within the "
    "window is established."
)
"""In its place, where owners can check."""

COMPARED: Final = (
    "Check rows compared sampled rows of the last version of each index with their texts: of its "
    "other rows that says a rate, of earlier versions nothing, and of no row whose document it is."
)
"""Behind `OWNED` and `OWNED_DOCUMENTS`, where rows are sampled."""

WITHHELD: Final = (
    "Withheld rows: that a row which an answer leaves out was deleted or changed in the store is "
    "the provider's word. How many each answer leaves out is counted; that the count is true, the "
    "account sees in its receipt, and nobody else."
)

WITHHELD_UNCOUNTED: Final = (
    "Withheld rows: a selected row whose document was deleted or changed, as the provider says, is "
    "left out of the answer. Its account sees that in its receipt; where noise is added, nobody "
    "else counts such rows."
)
"""With noise the count would tell the verifier, who knows the noise, something of the selection."""

IDS: Final = (
    "Which documents there are, by their ids: noise does not hide that from those who hold the "
    "secret of a tenant's id keys, as its owner does and everybody to whom the owner gave a proof. "
    "An account cannot tell whether a row that it is served is listed under its own id."
)
"""Where owners can check, and accounts cannot."""

RATE: Final = "Records outside the sample: what is stated about them is a compliance rate."

ASKED: Final = (
    "What accounts were made to ask: the provider could refuse, or log queries of its own in an "
    "account's name. An account that keeps its receipts can tell."
)

BEACON: Final = (
    "The beacon is drand's chain {}: noise and sample are unpredictable if the verifier, or enough "
    "of the chain's signers, keep what they hold secret until each round is due."
)

KNOWN_MODELS: Final = "The verifier's terms list as known from elsewhere: {}."

SAMPLE_ALONE: Final = (
    "The beacon is none: the verifier alone supplies the unpredictability of the sample."
)


_OF_OWNERS: Final = {
    NOT_COVERED[4]: OWNED,
    DOCUMENTS: OWNED_DOCUMENTS,
    UNOWNED: UNOWNED_ROWS,
}
"""What the provider's word alone is not, where owners of documents can check."""


_EXACT: Final = (NO_PRIVACY, GENERATED, _UNCHECKED, ROUNDING, DOCUMENTS, WITHHELD)
"""In place of `NOT_COVERED`, without noise."""


def reach(policy: Policy | None, numbers: Mapping[str, int | None]) -> tuple[str, ...]:
    """Return what a verdict under a policy does not cover; arguments as of `not_covered`.

    Args:
        policy: of the window, None where it cannot be read.
        numbers: the verdict's ``counts``.
    """
    if policy is None:
        return not_covered(None, numbers)
    return not_covered(
        policy.audit.mode,
        numbers,
        noised=policy.noised,
        columns=bool(policy.retrieval.public_columns),
        generation=policy.generation is not None,
        by_direction=policy.by_direction,
        owned=policy.owners is not None,
        rows=policy.owners is not None and policy.owners.rows is not None,
    )


def not_covered(
    mode: str | None,
    numbers: Mapping[str, int | None],
    *,
    noised: bool = True,
    columns: bool = False,
    generation: bool = False,
    by_direction: bool = False,
    owned: bool = False,
    rows: bool = False,
) -> tuple[str, ...]:
    """Return what a verdict does not cover (spec 10.4).

    Args:
        mode: "A" or "B" of the policy, None where there is none.
        numbers: the verdict's ``counts``; null for what was not counted.
        noised: whether the window has noise.
        columns: whether the policy declares public columns.
        generation: whether it has a generation channel.
        by_direction: whether its coalition estimate is that by direction.
        owned: whether owners of documents can check what is committed.
        rows: whether rows of their indexes are sampled beside that.
    """
    # Each text only where it is true: a list of all of them would say nothing of this window.
    texts = [*(NOT_COVERED if noised else _EXACT), UNOWNED]
    if mode == "B":
        texts.append(UNSAMPLED if noised else RATE)
    if numbers.get("disputes_open"):
        texts.append(DISPUTED)
    if noised and numbers.get("anchored"):
        texts.append(SHOWN)
    if numbers.get("plain"):
        texts.append(PLAIN if noised else ASKED)
    if by_direction:
        texts[2] = HIDDEN
    if owned:
        texts = [_OF_OWNERS.get(text, text) for text in texts]
    if rows:
        of_rows = (OWNED, OWNED_DOCUMENTS)
        texts = [f"{text} {COMPARED}" if text in of_rows else text for text in texts]
    if columns:
        texts.append(COLUMNS)
    if numbers.get("versions"):
        texts.append(VERSIONS)
    if numbers.get("epochs"):
        texts.append(EPOCHS)
    if generation:
        texts += [UNLOGGED, RENEWED]
    if numbers.get("voids"):
        texts.append(VOIDED)
    if noised:
        texts.append(WITHHELD_UNCOUNTED)
    if noised and owned:
        texts.append(IDS)
    return tuple(texts)


def assumptions(policy: Policy | None, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a verdict assumes (spec 10.4).

    Args:
        policy: of the window, None where it cannot be read.
        known: which committed models the verifier's terms list.
    """
    beacon = None if policy is None or policy.beacon is None else policy.beacon.chain.hash.hex()
    if policy is None or policy.noised:
        *shared, none, models = ASSUMPTIONS
        if known:
            models = f"{models} {KNOWN_MODELS.format(' and '.join(known))}"
        return (*shared, none if beacon is None else BEACON.format(beacon), models)
    # Without noise there are no neighbours to tell apart, and no generator to trust.
    last = SAMPLE_ALONE if beacon is None else BEACON.format(beacon)
    return (ASSUMPTIONS[0], ASSUMPTIONS[3], last)
