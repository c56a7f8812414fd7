"""Make the evidence of tests/frozen: one small window of real services, and what is left of it.

    python tests/support/freeze.py tests/frozen/0.1.0

The files are those of tests/frozen/README.md. A folder that is there is replaced.
"""

import hashlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

from ragaudit.encoding import canonical_json
from ragaudit.encoding.console import Console
from ragaudit.lab.demo.run import Demo, Options
from small_plan import WINDOW, small_plan


def main(folder: Path) -> None:
    """Play the window and write the files."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary) / "work"
        report = Demo(Options(keep=work), Console(file=io.StringIO()), small_plan).run()
        result = report.verdicts[WINDOW]["result"]
        if result != "PASS":
            sys.exit(f"the window is {result} (expected PASS): freeze it on an idle machine")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("bundle.zip", "bundle-public.zip", "verdict.json"):
            shutil.copy(work / "evidence" / WINDOW / name, folder / name)
        # An anchored account: only its receipts rest on a promise.
        (kept,) = (work / "clients" / "kitchen-0").rglob("account.json")
        shutil.copy(kept, folder / "account.json")
        shutil.copy(kept.parent / "receipts" / "3.json", folder / "receipt.json")
        shutil.copy(kept.parent / "promises" / "3.json", folder / "promise.json")
        policy = report.policies[WINDOW]
        shown = {"keys": policy["keys"], "policy": policy, "window": report.windows[WINDOW]}
        for name, value in shown.items():
            (folder / f"{name}.json").write_bytes(canonical_json.dumps(value))
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
    ]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
