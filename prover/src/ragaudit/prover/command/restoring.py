"""``ragaudit prover restore``: the service's parts at a restore, without its threads."""

from contextlib import closing

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.prover.components import Components
from ragaudit.prover.lifecycle.restoring import Restored, Restorer
from ragaudit.prover.service import Service
from ragaudit.prover.settings import Settings


def restore_window(
    settings: Settings, name: str, reason: str, components: Components | None = None
) -> Restored:
    """Let a window go on after a restore; the service does not run.

    Args:
        settings: of the service.
        name: of the window.
        reason: one of `Epoch.REASONS`.
        components: instead of the usual, for tests.

    Raises:
        UnsupportedError: another reason.
        RagauditError: as `Restorer.restore`, and as for a start of the service.
    """
    if reason not in Epoch.REASONS:
        raise UnsupportedError(f"reason {reason!r}", expected=" or ".join(Epoch.REASONS))
    with closing(Parts(settings, components or Components())) as service:
        service.retention.recall()
        return restorer_of(service).restore(name, reason)


class Parts(Service):
    """The service, never started; `close` is what `contextlib.closing` calls."""

    def close(self) -> None:
        """Let go of files and connections."""
        self.stop()


def restorer_of(service: Service) -> Restorer:
    """Return what restores windows of a service that is not started."""
    return Restorer(
        store=service.store,
        windows=service.windows,
        open_windows=service.open_windows,
        verifier=service.verifier,
        clock=service.clock,
    )
