"""What every verdict says of its own reach, in the words of docs/spec/10-verdict.md §10.4.

Reports, services and commands show these texts from here or from the signed verdict; there is no
second copy in code.
"""

from collections.abc import Mapping
from typing import Final

NOT_COVERED: Final = (
    "The texts of returned documents and the generated answer: the guarantee is about which "
    "positions are selected. Whoever reads a document's text has read it, whatever the noise was.",
    "Other windows: each has its own budget, and the same documents are exposed again in each. "
    "Over w windows alike, the privacy loss grows about with the square root of w.",
    "Coalitions of more accounts than the policy plans for, and coalitions that evade the "
    "estimator: accounts that agree to ask different questions about the same document do not look "
    "alike. The value for all records of a tenant needs no estimate.",
    "Answers whose account never checked its receipt: only the account can compare what it was "
    "given with what was committed.",
    "That one person has one account, that no document owns more rows than the policy says, and "
    "which documents a tenant's index holds: this is the provider's word.",
)

UNOWNED: Final = (
    "Which accounts belong to which tenant: no owner of a tenant countersigned its index or its "
    "registrations, so that is the provider's word."
)

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
    "provider's word."
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
)

WORTHLESS: Final = (
    "WORTHLESS: the provider's randomness in this window was derived from a published seed, for an "
    "experiment. Anyone can predict the noise. This verdict proves nothing about privacy."
)
"""Said on top wherever a verdict of a seeded window is shown."""


def not_covered(mode: str | None, counts: Mapping[str, int | None]) -> tuple[str, ...]:
    """Return what a verdict does not cover.

    Args:
        mode: "A" or "B" of the policy, None where there is none.
        counts: the verdict's; null for what was not counted.
    """
    texts = [*NOT_COVERED, UNOWNED]
    if mode == "B":
        texts.append(UNSAMPLED)
    if counts.get("disputes_open"):
        texts.append(DISPUTED)
    if counts.get("anchored"):
        texts.append(SHOWN)
    if counts.get("plain"):
        texts.append(PLAIN)
    return tuple(texts)
