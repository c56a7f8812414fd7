"""Step 11 of the check of an answer in words: who else stands behind both of its proofs."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ragaudit.client import checks, offline
from ragaudit.client.checks import Facts
from ragaudit.encoding.errors import RejectedError
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, Note, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.generated import GeneratedFile
from ragaudit.ledger.messages.receipt_check import StepResult
from receipt_scene import OPERATIONS, key
from words_scene import WordsScene, words_scene

FURTHER = SigningKey("third.example/cosigner", COSIGNATURE_V1, key(40))
TRUST = f"witness third {FURTHER.verifier_key}\nquorum third\n"


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scene's sketch is a toy's."""
    monkeypatch.setattr(checks, "CoreOperations", lambda: OPERATIONS)


def cosigned(scene: WordsScene, *times: int | None) -> GeneratedFile:
    """The file, charge and answer proven under a note with a further line of that time."""
    file = scene.file()
    found: list[TlogProof] = []
    for text, time in zip(file.public.proofs, times, strict=True):
        assert text is not None
        proof = TlogProof.parse(text.encode())
        note = parse_note(proof.checkpoint)
        more = [] if time is None else [cosign(note.text, FURTHER, time)]
        found.append(replace(proof, checkpoint=note.with_signatures(more).encode()))
    return file.with_proofs(*found)


def checked(scene: WordsScene, file: GeneratedFile) -> list[StepResult]:
    window: Any = SimpleNamespace(name="w1", view=scene.view, pinned=True, shown=None)
    return list(offline.check(file.to_json(), window, Facts()).checks)


@pytest.fixture(params=["required", "reported"])
def demand(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_quorum_stands_behind_both_from_the_later_time_on(demand: str) -> None:
    scene = words_scene(cosigners=(demand, TRUST))
    last = checked(scene, cosigned(scene, 1300, 1250))[-1]
    assert (last.number, last.name, last.status) == (11, "cosigners", "done")
    assert last.detail.endswith("since 1970-01-01T00:21:40Z"), last.detail


@pytest.mark.parametrize("times", [(None, None), (1300, None), (None, 1300)])
def test_without_it_behind_one_of_them_nobody_is_accused(
    demand: str, times: tuple[int | None, int | None]
) -> None:
    scene = words_scene(cosigners=(demand, TRUST))
    last = checked(scene, cosigned(scene, *times))[-1]
    due = "not done" if demand == "required" else "done"
    assert (last.number, last.status) == (11, due)
    assert "fetched later" in last.detail


def test_while_a_proof_is_outstanding_it_is_not_done(demand: str) -> None:
    scene = words_scene(cosigners=(demand, TRUST))
    last = checked(scene, replace(scene, proven=(True, False)).file())[-1]
    assert (last.number, last.status) == (11, "not done")


def test_a_false_line_is_rejected(demand: str) -> None:
    scene = words_scene(cosigners=(demand, TRUST))
    honest = cosigned(scene, 1300, 1300)
    proof = TlogProof.parse(str(honest.public.answer.proof).encode())
    note = parse_note(proof.checkpoint)
    other = cosign(f"{scene.view.policy.origin}\n9\n", FURTHER, 1300)
    lines = (*note.signatures[:-1], other)
    false = replace(proof, checkpoint=Note(note.text, lines).encode())
    charge = TlogProof.parse(str(honest.public.charge.proof).encode())
    with pytest.raises(RejectedError, match="cosign") as caught:
        checked(scene, honest.with_proofs(charge, false))
    assert caught.value.where.startswith("step 11")


def test_a_policy_that_names_nobody_has_no_such_step() -> None:
    scene = words_scene()
    assert [step.number for step in checked(scene, scene.file())] == list(range(8))
