"""An auditor repeats a verdict from its bundle, offline, without compiled code of ours.

    python audit_bundle.py all.zip VERDICT_KEY

It prints every check, and last the result with its epsilon, or none in a window without noise. It
raises RecheckDiffers with the difference that matters most if the verdict does not stand.
"""

import sys
from pathlib import Path

from ragaudit.encoding.signing import PublicKey
from ragaudit.verifier.engines import engine
from ragaudit.verifier.recheck import recheck


def main(bundle: str, verdict_key: str) -> None:
    """Repeat the procedure over the bundle and compare; the key is 64 hexadecimal digits."""
    done = recheck(
        Path(bundle),
        engine=engine("reference"),
        verdict_key=PublicKey.from_raw(bytes.fromhex(verdict_key)),
    )
    done.raise_for_differences()
    for check in done.outcome.checks:
        print(check.number, check.id, check.status, check.reason)
    for missing in done.not_repeated:
        print("not repeated:", missing)
    print(done.verdict.result, "epsilon", done.verdict.predicate.epsilon["headline"]["epsilon"])


if __name__ == "__main__":
    main(*sys.argv[1:])
