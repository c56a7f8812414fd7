"""Every rule of the two verifications matters: without it, a shared vector is decided wrongly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType

import pytest
import ragaudit.verifier.reference as reference
import reference_mutants as mutants
from ragaudit.lab.attacks.forging.moves import modules
from reference_mutants import Mutant
from reference_vectors import cases, decision, index_forgeries, read


def flips(package: ModuleType, kind: str, files: tuple[str, ...]) -> bool:
    """Whether the package decides some vector against its expectation."""
    chosen = [case for name in files for case in cases(name)]
    chosen.sort(key=lambda case: case["expect"] != "accept")
    return any(decision(package, kind, case) != case["expect"] for case in chosen)


@pytest.mark.parametrize("mutant", mutants.SELECTION_MUTANTS, ids=lambda m: m.name)
def test_a_selection_vector_is_decided_wrongly(
    mutant: Mutant, load: Callable[[Mutant], ModuleType]
) -> None:
    assert flips(load(mutant), "selection", ("selection_edge", "selection"))


@pytest.mark.parametrize("mutant", mutants.INDEX_MUTANTS, ids=lambda m: m.name)
def test_an_index_vector_is_decided_wrongly(
    mutant: Mutant, load: Callable[[Mutant], ModuleType]
) -> None:
    assert flips(load(mutant), "index", ("index_v2",))


@pytest.mark.parametrize("mutant", mutants.TIES_MUTANTS, ids=lambda m: m.name)
def test_a_ties_vector_is_decided_wrongly(
    mutant: Mutant, load: Callable[[Mutant], ModuleType]
) -> None:
    package = load(mutant)
    # A rule that is missing lets something through; a transcript of its own refuses the rest too.
    refused = (case for case in cases("ties") if case["expect"] == "reject")
    assert any(decision(package, "ties", case) != "reject" for case in refused)


FORGERIES = {case["name"]: case for case in index_forgeries()}


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (mutants.INDEX_V1, "offset-of-v1"),
        (mutants.INDEX_MASK_WEIGHT, "offset-in-C_m"),
        (mutants.INDEX_MASK_GENERATOR, "row-idx-M-compensated"),
        (mutants.INDEX_MASK_GENERATOR, "row-junk-on-idx/M"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_rows_with_entries_of_any_size_pass_without_their_rule(
    mutant: Mutant, name: str, load: Callable[[Mutant], ModuleType]
) -> None:
    assert decision(load(mutant), "index", FORGERIES[name]) == "accept"
    assert decision(reference, "index", FORGERIES[name]) == "reject"


def test_the_first_index_argument_is_this_one_with_two_faults(
    load: Callable[[Mutant], ModuleType],
) -> None:
    """Its vectors are decided as they were: what refuses them now is nothing else."""
    package = load(mutants.INDEX_V1)
    for case in cases("index_v1"):
        assert decision(package, "index", case) == case["expect"]


@pytest.mark.parametrize("mutant", mutants.DECODER_MUTANTS, ids=lambda m: m.name)
def test_a_point_decoder_with_a_fault_accepts_what_rfc_9496_refuses(
    mutant: Mutant, load: Callable[[Mutant], ModuleType]
) -> None:
    decode = modules(load(mutant)).ristretto.decode
    accepted = []
    for refused in read("rfc9496")["refused"].values():
        for encoding in map(bytes.fromhex, refused):
            with suppress(Exception):
                accepted.append(decode(encoding))
    # A set top bit is set in none of them: the transcripts below have it.
    assert accepted or mutant.name == "decoder_drops_the_top_bit"


@pytest.mark.parametrize("mutant", mutants.DECODER_MUTANTS[:2], ids=lambda m: m.name)
def test_a_proof_over_other_spellings_of_its_points_is_decided_wrongly(
    mutant: Mutant, load: Callable[[Mutant], ModuleType]
) -> None:
    package = load(mutant)
    odd = [case for case in cases("selection_noncanonical") if case["expect"] == "reject"]
    assert any(decision(package, "selection", case) == "accept" for case in odd)


@pytest.mark.parametrize("name", ["C_0-odd", "R_1-high-bit", "z2-plus-15l"])
def test_an_index_proof_over_other_spellings_is_accepted_by_a_decoder_of_any(
    name: str, load: Callable[[Mutant], ModuleType]
) -> None:
    case = next(case for case in cases("index_noncanonical") if case["name"] == name)
    assert decision(load(mutants.ANY_SPELLING), "index", case) == "accept"
    assert decision(reference, "index", case) == "reject"


@pytest.mark.parametrize(
    ("mutant", "field"), [*zip(mutants.LENGTH_MUTANTS, ["C", "z"], strict=True)], ids=["C", "z"]
)
def test_a_list_too_long_is_accepted_without_its_check(
    mutant: Mutant, field: str, load: Callable[[Mutant], ModuleType]
) -> None:
    case = next(case for case in cases("selection") if case["name"] == "honest-4")
    longer = {**case, field: [*case[field], case[field][0]]}
    assert decision(load(mutant), "selection", longer) == "accept"
    assert decision(reference, "selection", longer) == "reject"


@pytest.mark.parametrize("tag", mutants.ZERO_MUTANTS)
def test_a_challenge_of_zero_is_not_refused_without_its_check(
    tag: str, load: Callable[[Mutant], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = load(mutants.ZERO_MUTANTS[tag])
    transcript = modules(package).transcript.Transcript
    draw = transcript.scalar
    monkeypatch.setattr(transcript, "scalar", lambda self, t: 0 if t == tag else draw(self, t))
    case = next(case for case in cases("selection") if case["name"] == "honest-4")
    with pytest.raises(ValueError, match="not invertible"):
        decision(package, "selection", case)


def test_an_unchanged_copy_decides_the_vectors_rightly(
    load: Callable[[Mutant], ModuleType],
) -> None:
    copy = load(Mutant("nothing_changed", ()))
    assert not flips(copy, "selection", ("selection_edge",))
