"""Where the time of an answer goes, as the prover's own metrics tell it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

__all__ = ["PHASES", "Clock", "Spent"]

PHASES = ("admit", "embed", "noise", "score", "fetch", "commit", "sign")
_SAMPLE = re.compile(r"(ragaudit_[a-z_]+(?:\{[^}]*\})?) (\S+)")
_REQUEST = 'ragaudit_request_seconds_{}{{surface="{}"}}'
_PHASE = 'ragaudit_retrieval_seconds_sum{{phase="{}"}}'


@dataclass(frozen=True)
class Spent:
    """Mean seconds of an answer.

    Attributes:
        phases: of the retrieval, by name; those that took none are left out.
        rest: of the request beside them: HTTP, JSON, threads, and what watches it.
        durable: of a transaction with its fence; a phase ``commit`` waits for others before it.
        answers: that one transaction made durable.
    """

    phases: Mapping[str, float]
    rest: float
    durable: float
    answers: float

    @classmethod
    def between(
        cls, before: Mapping[str, float], after: Mapping[str, float], surface: str = "chroma"
    ) -> "Spent":
        """Return what was spent between two readings of the metrics.

        Args:
            before, after: values by name and labels; an answer and a transaction between them.
            surface: by which the answers were asked for.
        """

        def grown(name: str) -> float:
            return after.get(name, 0.0) - before.get(name, 0.0)

        requests = grown(_REQUEST.format("count", surface))
        whole = grown(_REQUEST.format("sum", surface)) / requests
        phases = {name: grown(_PHASE.format(name)) / requests for name in PHASES}
        commits = grown("ragaudit_commit_seconds_count")
        return cls(
            {name: seconds for name, seconds in phases.items() if seconds},
            whole - sum(phases.values()),
            grown("ragaudit_commit_seconds_sum") / commits,
            grown("ragaudit_commit_answers_sum") / commits,
        )


class Clock:
    """Reads the metrics of a prover, from one reading to the next."""

    def __init__(self, port: int, surface: str = "chroma") -> None:
        """Read for the first time.

        Args:
            port: of the metrics.
            surface: by which answers are asked for.
        """
        self._surface = surface
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._last = self._read()

    def spent(self) -> Spent:
        """Return what was spent since the last call, or since the beginning."""
        before, self._last = self._last, self._read()
        return Spent.between(before, self._last, self._surface)

    def _read(self) -> dict[str, float]:
        text = httpx.get(self._url, trust_env=False).raise_for_status().text
        return values(text)


def values(text: str) -> dict[str, float]:
    """Return the values of our metrics by name and labels.

    Args:
        text: in the format of Prometheus.
    """
    found = (_SAMPLE.fullmatch(line) for line in text.splitlines())
    return {match[1]: float(match[2]) for match in found if match}
