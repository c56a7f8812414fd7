"""What a verdict does not cover is said in the words of the specification (10.4)."""

import re
from pathlib import Path

from ragaudit.verifier.procedure import covered


def test_the_texts_of_a_verdict_are_those_of_the_specification() -> None:
    chapter = Path(__file__).parents[3] / "docs/spec/10-verdict.md"
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    found = re.findall(r"- `([NAI][0-9]+)`[:,][^“]*“([^”]*)”", text)
    conditional = (covered.UNSAMPLED, covered.DISPUTED, covered.SHOWN, covered.PLAIN)
    expected = (*covered.NOT_COVERED, covered.UNOWNED, *conditional)
    generating = (covered.UNLOGGED, covered.RENEWED, covered.VOIDED)
    changing = (covered.COLUMNS, covered.VERSIONS, covered.EPOCHS)
    second = (*changing, *generating, covered.WITHHELD_UNCOUNTED, covered.IDS)
    assert [each for name, each in found if name[0] == "N"] == [*expected, *second]
    assert [each for name, each in found if name[0] == "A"] == list(covered.ASSUMPTIONS)
    everything = covered.not_covered("B", {"disputes_open": 1, "anchored": 1, "plain": 1})
    least = (*expected[:-4], covered.WITHHELD_UNCOUNTED)
    assert everything == (*expected, covered.WITHHELD_UNCOUNTED)
    assert covered.not_covered("A", {"disputes_open": 0, "plain": None}) == least
    generated = covered.not_covered("A", {}, generation=True)
    assert generated == (*least[:-1], *generating[:2], covered.WITHHELD_UNCOUNTED)
    assert covered.VOIDED in covered.not_covered("A", {"voids": 1}, generation=True)
    known = covered.assumptions(None, ("the embedder", "the generator"))
    *same, models = known
    assert tuple(same) == covered.ASSUMPTIONS[:-1]
    added = models.removeprefix(covered.ASSUMPTIONS[-1]).strip()
    assert f"“{added}”" in text and added.startswith("The verifier's terms list")
    named = dict(found)
    order = ["I1", "I2", "N4", "I3", "I4", "I7", "N6", "I5", "N8", "I6", "N11", "N12", "N13"]
    counts = {"disputes_open": 1, "anchored": 0, "plain": 1, "versions": 1, "epochs": 1}
    unnoised = covered.not_covered("B", counts, noised=False, columns=True)
    assert unnoised == tuple(named[name] for name in order)
    assert covered.SAMPLE_ALONE in text
    assert f"“{covered.HIDDEN}”" in text
    directed = covered.not_covered("A", {}, by_direction=True)
    assert directed[2] == covered.HIDDEN
    assert directed == (*least[:2], covered.HIDDEN, *least[3:])


def test_what_owners_can_check_is_said_in_the_place_of_the_providers_word() -> None:
    chapter = Path(__file__).parents[3] / "docs/spec/10-verdict.md"
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    replaced = {
        "N5": (covered.NOT_COVERED[4], covered.OWNED),
        "N6": (covered.UNOWNED, covered.UNOWNED_ROWS),
        "I4": (covered.DOCUMENTS, covered.OWNED_DOCUMENTS),
    }
    assert f"`N5` is “{covered.OWNED}”" in text and f"`N6` is “{covered.UNOWNED_ROWS}”" in text
    assert f"`I4` (below) is “{covered.OWNED_DOCUMENTS}”" in text
    for noised, names in ((True, ("N5", "N6")), (False, ("I4", "N6"))):
        before = covered.not_covered("B", {"plain": 1}, noised=noised)
        after = covered.not_covered("B", {"plain": 1}, noised=noised, owned=True)
        changed = dict(replaced[name] for name in names)
        more = (covered.IDS,) if noised else ()
        assert after == (*(changed.get(each, each) for each in before), *more)
        assert set(changed) <= set(before)
        sampled = covered.not_covered("B", {"plain": 1}, noised=noised, owned=True, rows=True)
        assert f"“{covered.COMPARED}”" in text
        assert [each for each in sampled if each not in after] == [
            f"{replaced[names[0]][1]} {covered.COMPARED}"
        ]
