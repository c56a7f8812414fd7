"""What a job is: input bytes of a kind, and a key that follows from them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InternalError, RefusedError, UnavailableError
from ragaudit.encoding.tagged import enc

__all__ = ["Arrays", "Compute", "Job", "JobFailed", "JobsStopped", "JobsWithdrawn", "Kinds"]

Array = npt.NDArray[Any]
Progress = Callable[[float], bool]
"""Called with the share done, in [0, 1]; False cancels."""


class JobFailed(InternalError):
    """A job cannot be done, whoever tries: its inputs do not allow it, or no worker survives it."""


class JobsWithdrawn(RefusedError):
    """Nobody wants these jobs any more: their window ended while they were worked at."""


class JobsStopped(UnavailableError):
    """The service is shutting down; what is not done is done after its next start."""


class Arrays(Protocol):
    """The large inputs of jobs, by their window and the digest that names them."""

    def put(self, window: str, array: Array) -> str:
        """Keep an array, if it is not kept already, and return the digest that names it.

        Raises:
            UnavailableError: it cannot be written.
        """

    def get(self, window: str, digest: str) -> Array:
        """Return the array of a digest, not to be written to.

        Raises:
            UnavailableError: it is not there, or not what its name says.
        """

    def release(self, window: str) -> None:
        """Let go of what takes this process's memory."""

    def keep(self, windows: Collection[str]) -> None:
        """Remove every array of any other window."""

    def forget(self, window: str) -> None:
        """Remove every array of a window."""


Compute = Callable[[bytes, str, Arrays, Progress], bytes]
"""From a task, its window, the arrays and a progress to a result; errors of ours are its faults."""
Kinds = Mapping[str, Compute]


@dataclass(frozen=True)
class Job:
    """One piece of work.

    Attributes:
        kind: of the `Kinds` of its service.
        window: that wants it; jobs are withdrawn by window.
        name: what it is about, for people.
        task: its inputs but for the arrays that they name. For this window only: it may hold what
            is secret until the window's end, and never a seed or a key.
    """

    kind: str
    window: str
    name: str
    task: bytes = field(repr=False)

    @cached_property
    def key(self) -> str:
        """64 hexadecimal digits that follow from kind, window and inputs, so from the result's."""
        return sha256(enc("job", self.kind, self.window, self.task)).hexdigest()


def digest_of(array: Array) -> str:
    """Return the name of an array: SHA-256 of its type, its shape and its entries."""
    plain = np.ascontiguousarray(array)
    found = sha256(enc("array", plain.dtype.str, ",".join(map(str, plain.shape))))
    found.update(plain.data if plain.size else b"")
    return found.hexdigest()
