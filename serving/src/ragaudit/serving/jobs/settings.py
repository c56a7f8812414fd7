"""The section ``jobs`` of the settings: who does the long work of a service."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from ragaudit.serving.settings import Section

__all__ = ["PROCESS", "PROCRASTINATE", "JobSettings"]

PROCESS = "process"
PROCRASTINATE = "procrastinate"


class JobSettings(Section):
    """Who proves, verifies and commits.

    Attributes:
        executor: "process" for the service itself; "procrastinate" for workers that take jobs from
            a queue in the service's PostgreSQL database.
        folder: of the arrays that jobs name, on a disk that service and workers share.
        stalled_seconds: after how long without a sign of life a worker counts as dead, and its job
            is given to another one.
    """

    executor: Literal["process", "procrastinate"] = "process"
    folder: Path = Path("jobs")
    stalled_seconds: float = Field(default=30.0, ge=1, le=3600)
