"""What metrics show of the transactions that make answers durable."""

from prometheus_client import CollectorRegistry, Histogram
from ragaudit.serving.observed import SECONDS

__all__ = ["CommitMetrics"]

ANSWERS = (1, 2, 4, 8, 16, 32)


class CommitMetrics:
    """Counts durable transactions of windows' logs. Safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Add the metrics to a registry."""
        self._seconds = Histogram(
            "ragaudit_commit_seconds",
            "Time until a transaction of a log, and its fence, are durable.",
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._answers = Histogram(
            "ragaudit_commit_answers",
            "Answers and promises that one transaction made durable.",
            buckets=ANSWERS, registry=registry,
        )  # fmt: skip

    def committed(self, seconds: float, answers: int) -> None:
        """Count a transaction that is durable.

        Args:
            seconds: that it took, without waiting for the one before.
            answers: accounts whose counter it moved; without any, it is not counted.
        """
        if answers:
            self._seconds.observe(seconds)
            self._answers.observe(answers)
