"""The process between a prover and a cluster of Ray; the service starts it."""

from ragaudit.prover.work import KINDS
from ragaudit.serving.jobs.ray_driver import main

if __name__ == "__main__":
    main(KINDS)
