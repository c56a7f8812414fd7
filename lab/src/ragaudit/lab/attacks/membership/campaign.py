"""The questions of a test, asked once each, stored as they are answered, resumed where they ended.

A folder holds `plan.json`, what was declared before the first question, and `exchanges.jsonl`, one
question with its answer a line. Neither has a key.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.lab.attacks.membership.documents import Document
from ragaudit.lab.attacks.membership.endpoints import Answer, Caller, Template
from ragaudit.lab.attacks.membership.probing import Probe, probes

__all__ = ["Campaign", "Exchange", "Plan"]

_TOKEN = 4
"""Letters of a token, about."""


@dataclass(frozen=True)
class Plan:
    """What is declared before the first question.

    Attributes:
        template: of the endpoint, without its key.
        members, others: both classes.
        strategies: of the questions.
        seed: of order, folds and resampling.
        threshold: of the AUC, above which the test fails.
        claim: (epsilon, delta) for all questions about a document together; None if none is.
    """

    template: Template
    members: tuple[Document, ...]
    others: tuple[Document, ...]
    strategies: tuple[str, ...]
    seed: int
    threshold: float
    claim: tuple[str, str] | None

    @property
    def documents(self) -> dict[str, Document]:
        """Both classes, by id."""
        return {each.id: each for each in (*self.members, *self.others)}

    def probes(self) -> list[Probe]:
        """Return the questions, in the order in which they are asked."""
        return probes(tuple(self.documents.values()), self.strategies, self.seed)

    def encode(self) -> bytes:
        """Return the plan as JSON."""
        return json.dumps(asdict(self), sort_keys=True, indent=1).encode()

    @property
    def digest(self) -> str:
        """SHA-256 of the plan, hexadecimal."""
        return hashlib.sha256(self.encode()).hexdigest()

    def cost(self) -> tuple[int, int]:
        """Return the number of questions and, roughly, the tokens that are sent."""
        asked = self.probes()
        return len(asked), sum(len(each.query) for each in asked) // _TOKEN


@dataclass(frozen=True)
class Exchange:
    """A question with its answer."""

    probe: Probe
    answer: Answer


class Campaign:
    """A test in its folder. One process at a time."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Open or create the folder.

        Args:
            folder: of this test and no other.
            plan: must be the one with which the folder was begun.

        Raises:
            RefusedError: it was begun with another plan.
            MalformedError: what is stored is not ours.
        """
        self._folder, self._plan = folder, plan
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "plan.json"
        if not path.exists():
            _write(path, plan.encode())
        elif path.read_bytes() != plan.encode():
            raise RefusedError(
                "begun with other documents, strategies, endpoint, seed, threshold or claim",
                where=str(folder), expected="the same as before, or another --output",
            )  # fmt: skip
        self._asked = plan.probes()
        self.answered = self._load()

    @property
    def path(self) -> Path:
        """Of the stored exchanges."""
        return self._folder / "exchanges.jsonl"

    @property
    def left(self) -> int:
        """Questions that were not answered yet."""
        return len(self._asked) - len(self.answered)

    def ask(self, caller: Caller, done: Callable[[int], object]) -> Sequence[Exchange]:
        """Ask what was not answered yet, and return all exchanges.

        Args:
            caller: of the plan's endpoint.
            done: is called with the number of questions answered, as they are.

        Raises:
            UnavailableError, RefusedError: of the endpoint; what was answered is kept.
        """
        done(len(self.answered))
        with self.path.open("ab") as file:
            for probe in self._asked[len(self.answered) :]:
                answer, reply = caller.ask(probe.query)
                line = {"probe": asdict(probe), "answer": asdict(answer), "reply": reply}
                file.write(json.dumps(line).encode() + b"\n")
                # A question costs money, or budget: none is asked twice.
                file.flush()
                os.fsync(file.fileno())
                self.answered.append(Exchange(probe, answer))
                done(1)
        return self.answered

    def _load(self) -> list[Exchange]:
        if not self.path.exists():
            return []
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            # Cut off while it was written: the answer was not used for anything.
            _write(self.path, whole)
        found = [_read(line, at) for at, line in enumerate(whole.splitlines())]
        if [each.probe for each in found] != self._asked[: len(found)]:
            raise MalformedError("other questions", where=str(self.path))
        return found


def _read(line: bytes, at: int) -> Exchange:
    try:
        value: dict[str, Any] = json.loads(line)
        probe, answer = value["probe"], value["answer"]
        return Exchange(
            Probe(**{**probe, "expected": tuple(probe["expected"])}),
            Answer(answer["text"], tuple(answer["citations"]), answer["status"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedError("no exchange", where=f"exchanges.jsonl line {at + 1}") from error


def _write(path: Path, data: bytes) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(data)
    fresh.replace(path)


@contextmanager
def calling(template: Template, key: str, timeout: float) -> Iterator[Caller]:
    """Yield a caller and close it.

    Args:
        template: of the endpoint.
        key: for its headers.
        timeout: seconds of each phase of a call.
    """
    caller = Caller(template, key, timeout)
    try:
        yield caller
    finally:
        caller.close()
