"""The questions of a test, asked once each, stored as they are answered, resumed where they ended.

A folder holds `plan.json`, what was declared before the first question (the claimed guarantee that
the test may refute, too), and `exchanges.jsonl`, one question with its answer a line. Neither has a
key.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.attacks.membership.documents import Document
from ragaudit.lab.attacks.membership.endpoints import Answer, Caller, Template
from ragaudit.lab.attacks.membership.probing import Probe, probes
from ragaudit.lab.risk.translation import largest_auc
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp

_PRESENCE = NeighboringRelation.ADD_REMOVE


@dataclass(frozen=True)
class Claim:
    """What is claimed of a document's presence, for all questions about it together.

    Attributes:
        parameters: decimals as they were given, by name: epsilon and delta of approximate DP, or
            mu of Gaussian DP.
    """

    parameters: Mapping[str, str]

    @classmethod
    def of(cls, epsilon: str | None, delta: str | None, mu: str | None) -> Self | None:
        """Return the claim of one command line, None if none is made.

        Args:
            epsilon: 0 to 10^31.
            delta: 0 to 1, of an epsilon alone; 0 if it is None.
            mu: 0 to 10^15.

        Raises:
            MalformedError: both are claimed, or a delta of nothing.
            InvalidArgumentError: a value out of its range, or no number.
        """
        if epsilon is not None and mu is not None:
            raise MalformedError(
                "two claims", where="--claim-mu", expected="it, or --claim-epsilon"
            )
        if delta is not None and epsilon is None:
            raise MalformedError(
                "a delta without its epsilon", where="--claim-delta", expected="--claim-epsilon"
            )
        if epsilon is not None:
            claim = cls({"epsilon": epsilon, "delta": "0" if delta is None else delta})
        elif mu is not None:
            claim = cls({"mu": mu})
        else:
            return None
        claim.guarantee()
        return claim

    def guarantee(self) -> ApproximateDp | GaussianDp:
        """Return the guarantee, under add-remove; InvalidArgumentError."""
        if "mu" in self.parameters:
            return GaussianDp.of(self.parameters["mu"], _PRESENCE)
        return ApproximateDp.of(self.parameters["epsilon"], self.parameters["delta"], _PRESENCE)

    @property
    def cap(self) -> float:
        """The largest AUC of any test under it."""
        return largest_auc(self.guarantee())

    def __str__(self) -> str:
        """Return it in words."""
        return " at ".join(f"{name} {value}" for name, value in self.parameters.items())


_TOKEN = 4
"""Letters of a token, about."""
_ENOUGH = 20
"""Questions without one answer, after which no more are asked. Their order is random: where half of
all questions are declined, one test in a million ends so."""


@dataclass(frozen=True)
class Plan:
    """What is declared before the first question.

    Attributes:
        template: of the endpoint, without its key.
        members, others: both classes.
        strategies: of the questions.
        seed: of order, folds and resampling.
        threshold: of the AUC, above which the test fails.
        claim: that the answers may refute; None if there is none.
    """

    template: Template
    members: tuple[Document, ...]
    others: tuple[Document, ...]
    strategies: tuple[str, ...]
    seed: int
    threshold: float
    claim: Claim | None

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
    """A test in its folder, which no other process opens until it is closed."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Open or create the folder.

        Args:
            folder: of this test and no other.
            plan: must be the one with which the folder was begun.

        Raises:
            RefusedError: it was begun with another plan, or another process asks.
            MalformedError: no such folder can be made, or what is stored is not ours.
        """
        self._folder, self._plan = folder, plan
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab")
        except OSError as error:
            raise MalformedError(
                f"cannot write: {error.strerror}", where=f"--output {folder}", expected="a folder"
            ) from None
        self._asked = plan.probes()
        try:
            self._lock()
            self._begin(folder / "plan.json")
            self.answered = self._load()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another process go on."""
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RefusedError("another process asks", where=str(self._folder)) from None

    def _begin(self, path: Path) -> None:
        if not path.exists():
            _write(path, self._plan.encode())
        elif path.read_bytes() != self._plan.encode():
            raise RefusedError(
                "begun with other documents, strategies, endpoint, seed, threshold or claim",
                where=str(self._folder), expected="the same as before, or another --output",
            )  # fmt: skip

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
            UnavailableError: of the endpoint; what was answered is kept.
            RefusedError: of the endpoint too, or it answers nothing.
        """
        done(len(self.answered))
        for probe in self._asked[len(self.answered) :]:
            self._check_answers()
            answer, reply = caller.ask(probe.query)
            line = {"probe": asdict(probe), "answer": asdict(answer), "reply": reply}
            self._file.write(json.dumps(line).encode() + b"\n")
            # A question costs money, or budget: none is asked twice.
            self._file.flush()
            os.fsync(self._file.fileno())
            self.answered.append(Exchange(probe, answer))
            done(1)
        return self.answered

    def _check_answers(self) -> None:
        first = self.answered[:_ENOUGH]
        if len(first) == _ENOUGH and not any(each.answer.text for each in first):
            statuses = ", ".join(sorted({str(each.answer.status) for each in first}))
            raise RefusedError(
                f"no answer to any of {_ENOUGH} questions, status {statuses}",
                where=self._plan.template.url,
                expected="answers: look at --model, at the body, and at the replies in "
                f"{self.path}; then begin anew in another --output",
            )

    def _load(self) -> list[Exchange]:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            # Cut off while it was written: the answer was not used for anything.
            self._file.truncate(len(whole))
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
