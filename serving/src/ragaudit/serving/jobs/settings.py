"""The section ``jobs`` of the settings: who does the long work of a service."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator
from ragaudit.serving.settings import Section

__all__ = ["PROCESS", "PROCRASTINATE", "RAY", "JobSettings"]

PROCESS = "process"
PROCRASTINATE = "procrastinate"
RAY = "ray"


class JobSettings(Section):
    """Who proves, verifies and commits.

    Attributes:
        executor: "process" for the service itself; "procrastinate" for workers that take jobs from
            a queue in the service's PostgreSQL database; "ray" for a cluster, of the prover only.
        folder: of the arrays that jobs name, on a disk that service and workers share.
        stalled_seconds: after how long without a sign of life a worker counts as dead, and its job
            is given to another one.
        ray_address: HOST:PORT of the head of a cluster, of which the service's machine is a node.
        ray_token_file: of the cluster's token, mode 600.
        ray_cores: that one job takes of a node.
    """

    executor: Literal["process", "procrastinate", "ray"] = "process"
    folder: Path = Path("jobs")
    stalled_seconds: float = Field(default=30.0, ge=1, le=3600)
    ray_address: str | None = Field(default=None, pattern=r"^[^\s/@]+:[0-9]{1,5}$")
    ray_token_file: Path | None = None
    ray_cores: int = Field(default=2, ge=1, le=1024)

    @model_validator(mode="after")
    def _names_its_cluster(self) -> Self:
        if self.executor == RAY and (self.ray_address is None or self.ray_token_file is None):
            raise ValueError("executor ray: ray_address and ray_token_file are needed")
        return self
