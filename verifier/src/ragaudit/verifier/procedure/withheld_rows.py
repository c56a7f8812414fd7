"""Which rows answers withheld, by account: the member ``withheld`` of a verdict (docs/spec 10.12).

What a record counts is what its account's receipt names, or the account has both under one
signature (5.9, step 7). The verifier sees neither receipt nor store: it adds up.
"""

from collections import Counter
from typing import Any, Final

from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.members import known

MOST_ACCOUNTS: Final = 16
"""That are listed, those with the most withheld rows: a page that nobody reads names nobody."""


def withheld(context: Context) -> dict[str, Any] | None:
    """Return the member ``withheld``; numbers are null where the records are not at hand.

    Returns:
        None with noise, where records do not count, and for a policy that cannot be read.
    """
    policy, records = known(lambda: context.policy), known(lambda: context.records)
    if policy is None or policy.noised:
        return None
    if records is None:
        return {"rows": None, "answers": None, "accounts_concerned": None, "most": []}
    rows, answers = Counter[bytes](), Counter[bytes]()
    for record in records.summaries():
        if record.withheld > 0:
            rows[record.pseudonym] += record.withheld
            answers[record.pseudonym] += 1
    most = sorted(rows, key=lambda account: (-rows[account], account))[:MOST_ACCOUNTS]
    return {
        "rows": rows.total(),
        "answers": answers.total(),
        "accounts_concerned": len(rows),
        "most": [
            {
                "pseudonym": account.hex(),
                "rows": rows[account],
                "answers": answers[account],
                "of": context.by_account.count(account),
            }
            for account in most
        ],
    }
