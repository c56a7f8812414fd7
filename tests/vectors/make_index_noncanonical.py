"""Write index_noncanonical.json: index proofs of honest rows, one element each spelled otherwise.

Run `python tests/vectors/make_index_noncanonical.py`; proofs are random, so the file changes.
The prover's transcript runs over the bytes that it sends, so nothing but the decoder refuses them:
the script stops unless a verifier that takes every spelling accepts each of them.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))

import ragaudit.verifier.reference as reference  # noqa: E402
import reference_mutants as mutants  # noqa: E402
from ragaudit.lab.attacks.forging import index_prover as prover  # noqa: E402
from ragaudit.lab.attacks.forging.moves import negative, top_bit, unreduced  # noqa: E402
from ragaudit.lab.attacks.forging.selection_prover import four_squares  # noqa: E402

CONTEXT = bytes(range(32))
VECTORS = [[3, -4, 50, 0], [100, 60, -7, 1], [0, 0, 0, 0]]
ROUNDS = 17  # elements before: Kap_0 .. Kap_13, C_m, C_g, G
EVALUATIONS = ROUNDS + 3 * 10 + 2 * 3  # 2^10 rows of the cube, 2^3 columns
OPENING = EVALUATIONS + 15


def both(point: bytes) -> bytes:
    return top_bit(negative(point))


POINTS = {"odd": negative, "high-bit": top_bit, "odd-high-bit": both}
PROOF = {
    "Kap_0-high-bit": (0, top_bit),
    "Kap_5-odd": (5, negative),
    "Kap_13-odd-high-bit": (13, both),
    "C_m-odd": (14, negative),
    "C_m-high-bit": (14, top_bit),
    "C_g-odd-high-bit": (15, both),
    "G-plus-15l": (16, unreduced),
    "round-1-plus-15l": (ROUNDS, unreduced),
    "round-13-plus-15l": (EVALUATIONS - 1, unreduced),
    "kap_0-plus-15l": (EVALUATIONS, unreduced),
    "v_X-plus-15l": (OPENING - 1, unreduced),
    "L_1-odd": (OPENING, negative),
    "R_1-high-bit": (OPENING + 1, top_bit),
    "R_2-odd-high-bit": (OPENING + 3, both),
    "T-odd": (-3, negative),
    "T-high-bit": (-3, top_bit),
    "z1-plus-15l": (-2, unreduced),
    "z2-plus-15l": (-1, unreduced),
}


def main() -> None:
    """Make every case and write the file."""
    rows = [[*v, *four_squares(127**2 - sum(x * x for x in v))] for v in VECTORS]
    width, blindings = len(rows[0]), [11, 12, 13]
    _, honest = prover.prove_index(reference, CONTEXT, rows, blindings)
    elements = len(honest) // 32
    claims = {"canonical-control": prover.Claim()}
    for i, (name, spelling) in enumerate(POINTS.items()):
        claims[f"C_{i}-{name}"] = prover.Claim(spelled_rows={i: spelling})
    for name, (at, spelling) in PROOF.items():
        claims[name] = prover.Claim(spelled={at % elements: spelling})
    cases = []
    with TemporaryDirectory() as folder:
        lenient = mutants.ANY_SPELLING.load(Path(folder))
        for name, claim in claims.items():
            commitments, proof = prover.prove_index(reference, CONTEXT, rows, blindings, claim)
            lenient.verify_index(CONTEXT, len(rows), width - 4, commitments, proof)
            cases.append(
                {
                    "name": name,
                    "expect": "accept" if name == "canonical-control" else "reject",
                    "N": len(rows),
                    "d": width - 4,
                    "B2": 127**2,
                    "C": [commitments[i : i + 32].hex() for i in range(0, len(commitments), 32)],
                    "context": CONTEXT.hex(),
                    "proof": proof.hex(),
                }
            )
    origin = "tests/vectors/make_index_noncanonical.py, with the forging prover of the attacks"
    document = {
        "origin": origin,
        "argument": "index/v2",
        "why": "the transcript ran over the bytes sent, one element of which is not canonical",
        "cases": cases,
    }
    path = FOLDER / "index_noncanonical.json"
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
