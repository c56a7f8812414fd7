"""Copies of the reference verifier with one rule changed, importable beside the original."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import ragaudit.verifier.reference as reference

Edit = tuple[str, str, str]  # file, text that occurs exactly once, its replacement


@dataclass(frozen=True)
class Mutant:
    """A named change of the verifier's source."""

    name: str
    edits: tuple[Edit, ...]

    def load(self, folder: Path) -> ModuleType:
        """Import the changed copy, which is written under ``folder``."""
        package = f"reference_mutant_{self.name}"
        copy = folder / package
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(str(reference.__file__)).parent, copy, ignore=ignored)
        # A hash for each of a thousand generators takes most of a small case's time.
        (copy / "generators.py").write_text(f"from {reference.__name__}.generators import *\n")
        for name, old, new in self.edits:
            source = (copy / name).read_text()
            assert source.count(old) == 1, f"{self.name}: {old!r} must occur once in {name}"
            (copy / name).write_text(source.replace(old, new))
        spec = importlib.util.spec_from_file_location(
            package, copy / "__init__.py", submodule_search_locations=[str(copy)]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[package] = module
        spec.loader.exec_module(module)
        return module


def _selection(name: str, *changes: tuple[str, str]) -> Mutant:
    return Mutant(name, tuple(("selection.py", old, new) for old, new in changes))


THETA = _selection(
    "theta_is_one",
    ('theta = transcript.scalar("theta")', 'theta = transcript.scalar("theta") * 0 + 1'),
)
E2 = _selection("e2_removed", ('(-c_D, D_m)], "E2")', '(-c_D, D_m)][:0], "E2")'))
NORM = Mutant(
    "norm_unchecked",
    (("statement.py", "sum(e * e for e in self.query) <= self.squared_norm", "True"),),
)
CERTAIN = _selection(
    "certain_rows_not_subtracted",
    ('    commitment += [(-1, generator("A", i)) for i in F]\n', ""),
)
CHI_MASK = _selection(
    "chi_includes_mask_row", ("chi = sum(eq_r[:u])", "chi = sum(eq_r[:u]) + eq_r[-1]")
)
M_MASK = _selection(
    "m_includes_mask_row",
    ("M = dot(eq_t[:u], eq_r[:u])", "M = dot(eq_t[:u], eq_r[:u]) + eq_t[-1] * eq_r[-1]"),
)
C19 = _selection("c19_dropped", ("constraints += [b3 * b4]", "constraints += [0]"))
C20 = _selection("c20_dropped", ("constraints += [(b3 + b4) * at_boundary]", "constraints += [0]"))
C21 = _selection(
    "c21_dropped",
    (
        "constraints += [(2 * b - 1) * Y - (1 - b) - sum(u_k << k for k, u_k in enumerate(u))]",
        "constraints += [0]",
    ),
)
SUM_B3 = _selection(
    "sum_of_b3_dropped",
    ("return (alpha[-2] + alpha[-1] * remaining)", "return (alpha[-1] * remaining)"),
    ("sums = alpha[-2] * b3 + alpha[-1] * counted", "sums = alpha[-1] * counted"),
)
SUM_B = _selection(
    "sum_of_b_and_b4_dropped",
    ("return (alpha[-2] + alpha[-1] * remaining)", "return (alpha[-2])"),
    ("sums = alpha[-2] * b3 + alpha[-1] * counted", "sums = alpha[-2] * b3"),
)
CONTEXT = Mutant(
    "context_not_absorbed",
    (("statement.py", '    transcript.absorb("context", statement.context)\n', ""),),
)
MARGIN = Mutant(
    "margin_of_u_too_small", (("statement.py", "2 * self.squared_norm", "self.squared_norm"),)
)


def _decoder(name: str, old: str, new: str) -> Mutant:
    return Mutant(name, (("ristretto.py", old, new),))


DECODER_MUTANTS = (
    _decoder("decoder_accepts_negative_s", " or _is_negative(s):", ":"),
    _decoder(
        "decoder_drops_the_top_bit",
        's = int.from_bytes(data, "little")',
        's = int.from_bytes(data, "little") & (1 << 255) - 1',
    ),
    _decoder(
        "decoder_reduces_s",
        's = int.from_bytes(data, "little")',
        's = int.from_bytes(data, "little") % P',
    ),
    _decoder("decoder_accepts_non_squares", "not was_square or ", ""),
    _decoder("decoder_accepts_negative_xy", "_is_negative(t) or ", ""),
    _decoder("decoder_accepts_y_0", " or y == 0:", ":"),
)
ANY_SPELLING = Mutant(
    "any_spelling",
    (
        *DECODER_MUTANTS[0].edits,
        *DECODER_MUTANTS[1].edits,
        ("field.py", " or value >= ORDER:", ":"),
    ),
)
"""Takes every spelling of an element: its number modulo 2^255, either sign, any multiple of l."""

LENGTH_MUTANTS = (
    Mutant(
        "commitments_too_many",
        (("statement.py", "len(self.commitments) == ", "len(self.commitments) >= "),),
    ),
    Mutant("noise_too_much", (("statement.py", "len(self.noise) == ", "len(self.noise) >= "),)),
)
ZERO_MUTANTS = {
    "fold": Mutant("fold_may_be_0", (("opening.py", "if c_k == 0:", "if False:"),)),
    "rho": Mutant("rho_may_be_0", (("sumcheck.py", "if rho == 0:", "if False:"),)),
}

INDEX_PROJECTIONS = Mutant(
    "projections_before_commitments",
    (
        (
            "index.py",
            '    transcript.absorb("C", bytes(commitments))\n',
            "",
        ),
        (
            "index.py",
            '    bits = transcript.bits("projections", PROJECTIONS * (N + d + 4))\n',
            '    bits = transcript.bits("projections", PROJECTIONS * (N + d + 4))\n'
            '    transcript.absorb("C", bytes(commitments))\n',
        ),
    ),
)
INDEX_CONTEXT = Mutant(
    "index_context_not_absorbed",
    (("index.py", '    transcript.absorb("context", bytes(context))\n', ""),),
)
INDEX_THETA = Mutant(
    "index_theta_is_one",
    (
        (
            "index.py",
            'gamma, theta, x = (transcript.scalar(tag) for tag in ("gamma", "theta", "x"))',
            'gamma, theta, x = (transcript.scalar(tag) ** (tag != "theta")'
            ' for tag in ("gamma", "theta", "x"))',
        ),
    ),
)
_ALPHA = '    alpha = powers(transcript.scalar("alpha"), LIMB_BITS + 2)\n'
INDEX_NORM = Mutant("index_norm_dropped", (("index.py", _ALPHA, _ALPHA + "    alpha[14] = 0\n"),))
INDEX_RANGE = Mutant(
    "index_projections_dropped", (("index.py", _ALPHA, _ALPHA + "    alpha[15] = 0\n"),)
)
INDEX_M_MASK = Mutant(
    "index_m_includes_mask_row",
    (
        (
            "index.py",
            "M_R, M_N = dot(eq_t[:R], eq_x[:R]), dot(eq_t[:N], eq_x[:N])",
            "M_R, M_N = dot(eq_t[:R], eq_x[:R]), dot(eq_t[:N], eq_x[:N]) + eq_t[-1] * eq_x[-1]",
        ),
    ),
)

_MASK_WEIGHT = ("index.py", "    return eq_x[-1]\n", "    return 1\n")
INDEX_MASK_WEIGHT = Mutant("index_mask_weighs_one", (_MASK_WEIGHT,))
_MASK_GENERATOR = (
    "index.py",
    'return [*rows, *generators("idx/R", 1 + sum(degrees))]',
    'return [*rows, generator("idx/M"), *generators("idx/R", 1 + sum(degrees))]',
)
_ROWS_FORM = "rows = [theta * value % ORDER for value in eq_columns]"
INDEX_MASK_GENERATOR = Mutant(
    "index_mask_generator_for_rows",
    (
        _MASK_GENERATOR,
        ("index.py", _ROWS_FORM, f"{_ROWS_FORM} + [theta * eq_columns[0] % ORDER]"),
    ),
)
INDEX_V1 = Mutant(
    "index_v1",
    (
        ("index.py", '"index/v2"', '"index/v1"'),
        _MASK_WEIGHT,
        _MASK_GENERATOR,
        ("index.py", _ROWS_FORM, f"{_ROWS_FORM} + [theta * eq_x[-1] * eq_columns[0] % ORDER]"),
    ),
)
"""The argument as it was: both faults and its own name."""


def _ties(name: str, old: str, new: str) -> Mutant:
    return Mutant(name, (("ties.py", old, new),))


TIES_MUTANTS = (
    _ties("ties_order_unchecked", "require(last < statement.others[0]", "require(last == last"),
    _ties("ties_first_uncounted", "require(len(first) == statement.top_k", "require(True"),
    _ties("ties_named_twice", "require(len(set(named)) == len(named)", "require(True"),
    _ties("ties_beyond_n", "all(0 <= i < statement.rows for i in named)", "True"),
    _ties("ties_long_query", "sum(e * e for e in statement.query) <= B2", "True"),
    _ties("ties_lambda_is_one", 'transcript.scalar("lambda")', '1 ** transcript.scalar("lambda")'),
    *(
        _ties(f"ties_{tag}_not_absorbed", f'transcript.absorb("{tag}", ', f"{tag} = (")
        for tag in ("context", "shape", "e", "K", "served", "withdrawn", "others", "C")
    ),
)


def _budget(name: str, old: str, new: str) -> Mutant:
    return Mutant(f"budget_{name}", (("budget.py", old, new),))


BUDGET_BITS = _budget("bits_unchecked", "weight * (v * v - v) % ORDER", "0")
BUDGET_SUMS = _budget("sums_unchecked", "check_zero(sums, ", "check_zero(sums[:0], ")
BUDGET_VECTORS = _budget("vectors_unchecked", "claimed = count + more", "claimed = count")
BUDGET_MASK_ROW = _budget("mask_row_weighs_one", "eq_x[-1], gamma]", "1, gamma]")
BUDGET_GAMMA = _budget(
    "gamma_is_one", 'gamma, theta = transcript.scalar("gamma")', "gamma, theta = 1"
)
BUDGET_THETA = _budget("theta_is_one", 'transcript.scalar("theta")\n', "1\n")
BUDGET_CONTEXT = _budget(
    "context_not_absorbed", 'transcript.absorb("context", bytes(context))', "assert context"
)


def _charge(name: str, old: str, new: str) -> Mutant:
    return Mutant(f"charge_{name}", (("charge.py", old, new),))


CHARGE_BITS = _charge("bits_unchecked", "return (everywhere * bits + ", "return (")
CHARGE_DISTANCE = _charge("distance_unchecked", "+ alpha[len(u) + 1] * distance", "+ 0 * distance")
CHARGE_EXHAUSTED = _charge("exhausted_unchecked", "alpha[len(u)] * h * (M - c) + ", "0 * c + ")
CHARGE_OUTSIDE = _charge(
    "outside_unchecked", "+ (everywhere - inside) * outside)", "+ 0 * outside)"
)
CHARGE_MASK_ROW = _charge("mask_row_weighs_one", "    return eq_x[-1]\n", "    return 1\n")
CHARGE_CONTEXT = _charge(
    "context_not_absorbed", 'transcript.absorb("context", bytes(entry.context))', "assert entry"
)
SELECTION_MUTANTS = (
    THETA,
    E2,
    NORM,
    CERTAIN,
    CHI_MASK,
    M_MASK,
    C19,
    C20,
    C21,
    SUM_B3,
    SUM_B,
    CONTEXT,
    MARGIN,
)
INDEX_MUTANTS = (
    INDEX_PROJECTIONS,
    INDEX_CONTEXT,
    INDEX_THETA,
    INDEX_M_MASK,
    INDEX_NORM,
    INDEX_RANGE,
    INDEX_MASK_WEIGHT,
    INDEX_MASK_GENERATOR,
)
