"""The service put together: what every request handler works with."""

import asyncio
import logging
from dataclasses import dataclass

from ragaudit.ledger.log.database import await_server
from ragaudit.serving.bodies import Room, anonymous_room
from ragaudit.serving.jobs.opening import PROCESS, open_runner
from ragaudit.serving.jobs.runner import Runner
from ragaudit.serving.rounds import RoundFinder
from ragaudit.verifier import keys as key_files
from ragaudit.verifier.engines import fastest_engine
from ragaudit.verifier.history import Clock
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.models import GeneratorService
from ragaudit.verifier.service.audit import AuditRunner, Scheduler
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.capacity import shortfalls
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.cosigner import Attestations
from ragaudit.verifier.service.database import Database
from ragaudit.verifier.service.disputes import Disputes
from ragaudit.verifier.service.evidence import Bundles
from ragaudit.verifier.service.handover import Handover
from ragaudit.verifier.service.intake import Intake
from ragaudit.verifier.service.later_versions import LaterVersions
from ragaudit.verifier.service.registration import Registrar
from ragaudit.verifier.service.retention import Retention
from ragaudit.verifier.settings import Settings, make_data_folder
from ragaudit.verifier.terms import DEFAULT, Terms
from ragaudit.verifier.work import JOBS

_log = logging.getLogger(__name__)


def _is_round(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """By whichever engine is there: it is looked for when the first round is verified."""
    return fastest_engine().is_round(public_key, message, signature)


@dataclass(frozen=True)
class Service:
    """Settings, secrets, database, and the parts that do the work.

    Attributes:
        terms: on which this verifier audits (docs/spec/09-audit.md §9.4).
        runner: one audit at a time; it alone calls `auditor.audit`.
        scheduler: does what an instant has made due.
        workers: has arguments checked elsewhere; None where this process does.
        anonymous: turns of large unsigned bodies, of which each is held while it is parsed.
        signed: turns of large JSON bodies of providers, likewise.
        room: of all unsigned bodies, while they arrive and wait.
    """

    settings: Settings
    keys: VerifierKeys
    terms: Terms
    database: Database
    auditor: Auditor
    registrar: Registrar
    later_versions: LaterVersions
    intake: Intake
    disputes: Disputes
    handover: Handover
    attestations: Attestations
    sampler: Sampler
    runner: AuditRunner
    scheduler: Scheduler
    bundles: Bundles
    workers: Runner | None
    anonymous: asyncio.Semaphore
    signed: asyncio.Semaphore
    room: Room

    @classmethod
    def open(cls, settings: Settings, clock: Clock, auditor: Auditor | None) -> "Service":
        """Load the secrets and open the database.

        Args:
            clock: Unix milliseconds; every attested time is taken from it.
            auditor: runs the checks and signs; None for the procedure with the engine of the
                settings.

        Raises:
            MalformedError, RefusedError: `keys.load`, `Terms.load`.
            RestoredBackup: the database is behind its fence.
            UnavailableError: database, fence or their folder cannot be used now.
            UnsupportedError: the database is of another version, or the chosen engine is not
                installed.
        """
        for line in shortfalls(settings.limits):
            _log.warning("%s", line)
        terms = DEFAULT if settings.terms is None else Terms.load(settings.terms)
        keys = key_files.load(settings.secrets, settings.name, settings.arbiter)
        make_data_folder(settings)
        await_server(settings.database_url, settings.database_wait_seconds)
        database = Database(settings.database_url, clock, settings.fence_place)
        workers = None
        if settings.jobs.executor != PROCESS:
            workers = open_runner(settings.jobs, JOBS, database.engine)
        asked = None if settings.generator is None else GeneratorService(settings.generator)
        auditor = auditor or Auditor(keys, settings.engine, settings.embedder, workers, asked)
        rounds = RoundFinder(settings.beacon, engine=_is_round)
        sampler = Sampler(database, keys, rounds)
        disputes = Disputes(
            database, auditor.judge_dispute, sampler, settings.limits.submitted_bytes
        )
        runner = AuditRunner(
            database, keys, auditor, sampler, disputes, settings.time_stamp_root_bytes or b""
        )
        return cls(
            settings=settings,
            keys=keys,
            terms=terms,
            database=database,
            auditor=auditor,
            registrar=Registrar(database, keys, auditor, terms, settings.limits, rounds.chain),
            later_versions=LaterVersions(database, auditor, settings.limits),
            intake=Intake(database, settings.limits.submitted_bytes),
            disputes=disputes,
            handover=Handover(database, settings.limits),
            attestations=Attestations(database, settings.time_stamp_root_bytes),
            sampler=sampler,
            runner=runner,
            scheduler=Scheduler(
                database, sampler, runner, Retention(database, keys, settings.retention_days)
            ),
            bundles=Bundles(database),
            workers=workers,
            anonymous=asyncio.Semaphore(settings.limits.anonymous_at_once),
            signed=asyncio.Semaphore(settings.limits.anonymous_at_once),
            room=anonymous_room(),
        )

    def close(self) -> None:
        """Stop the audit at its next step and close the database."""
        # In this order: an audit that still runs writes its verdict to the database.
        if self.workers is not None:
            self.workers.stop()
        self.runner.close()
        self.sampler.rounds.close()
        if self.workers is not None:
            self.workers.close()
        self.database.close()
