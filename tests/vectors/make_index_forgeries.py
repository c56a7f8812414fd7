"""Write index_forgeries.json: index proofs over rows with huge entries, all to be refused.

Run `python tests/vectors/make_index_forgeries.py`; proofs are random, so the file changes.
Each case satisfies a wrong verification of index/v2, made from the reference verifier by the edits
of tests/support/reference_mutants.py, and the script stops unless it does.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))

import reference_mutants as mutants  # noqa: E402
from ragaudit.lab.attacks.forging import index_prover as prover  # noqa: E402
from ragaudit.lab.attacks.forging.selection_prover import four_squares  # noqa: E402

CONTEXT = bytes(range(32))
HUGE = 10**19
VECTORS = [[3, -4, 50, 0], [100, 60, -7, 1], [0, 0, 0, 0]]


def main() -> None:
    """Make every case and write the file."""
    rows = [[*v, *four_squares(127**2 - sum(x * x for x in v))] for v in VECTORS]
    width, blindings = len(rows[0]), [11, 12, 13]
    offset = [HUGE, 0, -HUGE, 5, 0, 0, 7, HUGE]
    under_v2 = mutants.Mutant("index_v1_under_v2", mutants.INDEX_V1.edits[1:])
    attacks = [
        (
            "offset-in-C_m",
            "entries of 10^19, cancelled in C_m, accepted if C_m has weight 1",
            mutants.INDEX_MASK_WEIGHT,
            prover.offset_claim(rows, offset),
        ),
        (
            "offset-in-C_m-of-v1",
            "the same under index/v1's basis and form and index/v2's name",
            under_v2,
            prover.offset_claim(rows, offset),
        ),
        (
            "row-junk-on-idx/M",
            "entries of 10^19, cancelled on a generator for masks, accepted if there is one",
            mutants.INDEX_MASK_GENERATOR,
            prover.junk_claim(rows, [HUGE, -HUGE, 1]),
        ),
    ]
    cases = []
    with TemporaryDirectory() as folder:
        for name, why, mutant, (committed, claim) in attacks:
            package = mutant.load(Path(folder))
            commitments, proof = prover.prove_index(package, CONTEXT, committed, blindings, claim)
            package.verify_index(CONTEXT, len(rows), width - 4, commitments, proof)
            cases.append(
                {
                    "name": name,
                    "expect": "reject",
                    "why": why,
                    "N": len(rows),
                    "d": width - 4,
                    "B2": 127**2,
                    "C": [commitments[i : i + 32].hex() for i in range(0, len(commitments), 32)],
                    "context": CONTEXT.hex(),
                    "proof": proof.hex(),
                }
            )
    origin = "tests/vectors/make_index_forgeries.py, with the forging prover of the attacks"
    text = json.dumps({"origin": origin, "argument": "index/v2", "cases": cases}, indent=1)
    (FOLDER / "index_forgeries.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
