"""Price what a coalition learns, by every accountant, and calibrate the noise for one.

Run it with ``python account_privacy.py``.
"""

from ragaudit.privacy import (
    ACCOUNTANTS,
    Coalition,
    Composition,
    GaussianAccountant,
    NoisyScores,
    RealisedCoalition,
    calibrate_coalition,
    guarantee_sentence,
    largest_coalition,
)

account = NoisyScores.of_policy("9", "replace", 1, 20)  # sigma, relation, g, r
planned = Coalition(account, accounts=5, windows=3)
asked = RealisedCoalition(account, counts=(20, 17, 4, 4, 1), accounts=2)
for accountant in ACCOUNTANTS:
    print(f"{accountant.name}: {accountant.price(planned, 1e-6)}")
together = GaussianAccountant().price(Composition((planned, asked)), "1e-6")
print(f"with what was asked: {together}")
print(largest_coalition(account, 8, "1e-6", rate=20), "accounts for epsilon 8")
print(calibrate_coalition(8, "1e-6", accounts=5, rate=20, relation="replace", group_size=1))

told_apart = GaussianAccountant().gaussian(planned).total_variation()
print(guarantee_sentence(told_apart.value, told_apart.relation, accounts=5))
