"""Resident memory of other processes while they work: over time, and the largest of a phase."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from ragaudit.lab.bench.memory import peak_memory_mib, reset_peak

__all__ = ["Growth", "MemoryWatch", "peaks", "reset_peaks"]

_SAMPLE_SECONDS = 1.0
_FLAT_SHARE = 0.05
_LEAST = 10  # samples of a line that means something


@dataclass(frozen=True)
class Growth:
    """The least-squares line through a process's resident size.

    The first quarter of the samples is left out: caches fill there.

    Attributes:
        first, last: MiB, of the line at its ends.
        per_minute: MiB, its slope.
    """

    first: float
    last: float
    per_minute: float

    @classmethod
    def of(cls, seconds: Sequence[float], resident: Sequence[float]) -> "Growth | None":
        """Return the line; None of too few samples.

        Args:
            seconds: of each sample, rising.
            resident: MiB of each.
        """
        skipped = len(seconds) // 4
        if len(seconds) - skipped < _LEAST:
            return None
        at = np.array(seconds[skipped:])
        slope, offset = np.polyfit(at, np.array(resident[skipped:]), 1)
        return cls(float(offset + slope * at[0]), float(offset + slope * at[-1]), 60 * float(slope))

    @property
    def flat(self) -> bool:
        """Whether the line rises by less than 5 %."""
        return self.last - self.first < _FLAT_SHARE * self.first


class MemoryWatch:
    """Samples the resident size of processes every second; a context manager."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        """Watch nothing yet.

        Args:
            processes: ids by name.
        """
        self._processes = dict(processes)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seconds: list[float] = []
        self.resident: dict[str, list[float]] = {name: [] for name in processes}

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def growth(self, name: str) -> Growth | None:
        """Return how the memory of a process grew.

        Args:
            name: one of those that are watched.
        """
        return Growth.of(self.seconds, self.resident[name])

    def _watch(self) -> None:
        number = 0
        while not self._done.wait(_SAMPLE_SECONDS):
            with contextlib.suppress(OSError):  # of a process that has just ended
                found = {name: _resident(pid) for name, pid in self._processes.items()}
                for name, size in found.items():
                    self.resident[name].append(size)
                number += 1
                self.seconds.append(number * _SAMPLE_SECONDS)


def reset_peaks(processes: Mapping[str, int]) -> None:
    """Make the present resident size of processes their peak, where the system allows it.

    Args:
        processes: ids by name.
    """
    for pid in processes.values():
        reset_peak(Path(f"/proc/{pid}/clear_refs"))


def peaks(processes: Mapping[str, int]) -> dict[str, float]:
    """Return the largest resident size of processes since `reset_peaks`, in MiB.

    Args:
        processes: ids by name; they run.
    """
    return {name: peak_memory_mib(Path(f"/proc/{pid}/status")) for name, pid in processes.items()}


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError
