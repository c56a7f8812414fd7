"""Services that die at named steps of their work, one after the other, and are started again.

The process kills itself with SIGKILL where a function is called, or where it returns: nothing of it
runs any more, no handler, no buffer is written. What does that is run before the service's program,
which has no part in it.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from prover_process import Prover
from verifier_process import VerifierProcess

_DIES = """
import functools, importlib, os, signal
def dies(place, when, after):
    module, _, path = place.partition(":")
    *outer, name = path.split(".")
    owner = functools.reduce(getattr, outer, importlib.import_module(module))
    honest, calls = getattr(owner, name), 0
    def die():
        nonlocal calls
        calls += 1
        if calls > after:
            os.kill(os.getpid(), signal.SIGKILL)
    def dying(*arguments, **options):
        if when == "before":
            die()
        answer = honest(*arguments, **options)
        if when == "after":
            die()
        return answer
    setattr(owner, name, dying)
dies({place!r}, {when!r}, {after})
"""


@dataclass(frozen=True)
class Step:
    """A moment in the work of a service.

    Attributes:
        name: of the moment, in words.
        place: of a function or method, ``module:name`` or ``module:Class.name``.
        when: "before" it runs, or "after" it returned.
        after: so many calls that are survived.
    """

    name: str
    place: str
    when: str
    after: int = 0

    @property
    def prelude(self) -> str:
        """Python code that has the process die there."""
        return _DIES.format(place=self.place, when=self.when, after=self.after)


class Mortal(threading.Thread):
    """Starts a service again whenever it died, to die at the next of its steps.

    Attributes:
        died: names of the steps at which it did.
        wrong: of an end that was none of these.
    """

    def __init__(self, service: Prover | VerifierProcess, steps: Sequence[Step]) -> None:
        """Look after a service that runs; it dies first when somebody kills it.

        Args:
            steps: in the order in which they come.
        """
        super().__init__()
        self.service = service
        self.died: list[str] = []
        self.wrong = ""
        self._steps = list(steps)
        self._always = service.prelude
        self._over = threading.Event()
        self._starting = threading.Lock()
        self._spared = False  # killed by somebody else

    def run(self) -> None:
        """Go on until `end`."""
        due: list[Step] = []  # the step that the process is to die at
        while True:
            assert self.service.process is not None
            code = self.service.process.wait()
            if self._over.is_set():
                return
            if code != -signal.SIGKILL:
                self.wrong = f"exit code {code}: {self.service.log.read_text()}"
                return
            with self._starting:
                if not self._spared:
                    self.died += [step.name for step in due]
                    due, self._steps = self._steps[:1], self._steps[1:]
                self._spared = False
                self.service.prelude = self._always + "".join(step.prelude for step in due)
                self.service.launch()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Kill the service, where it is; it is started again afterwards, for the same step."""
        with self._starting:
            assert self.service.process is not None
            self._spared = True
            self.service.process.kill()
            self.service.process.wait()
            yield

    def has_died(self, step: Step) -> bool:
        """Return whether it died at this step, and so at all before it."""
        return step.name in self.died

    def check(self) -> None:
        """Raise if it ended otherwise."""
        if self.wrong:
            raise RuntimeError(self.wrong)

    def end(self) -> None:
        """Stop the service in order."""
        self._over.set()
        assert self.service.process is not None
        self.service.process.terminate()
        self.join()
