"""One thread in which questions are answered: each of them goes on until it has to wait.

A question is ordinary code in a coroutine of its own (a greenlet). Where others need the same, a
transaction for instance, it lets those behind it come as far first, and all are served at once
(`together`); what another machine does for it, or what computes for long, runs in a thread
meanwhile (`aside`). So many questions cost one transaction, and none a switch of threads, at each
of which the interpreter's lock changes hands.

Code that runs here and waits holds nothing that other questions need, but a `TaskLock`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from math import inf
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Generic, ParamSpec, Self, TypeVar

from greenlet import getcurrent, greenlet

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
# What takes longer is worth a thread of its own.
_AT_ONCE_SECONDS = 0.0005
_RISE = 1.25  # a call may be held up by others once: only the shortest of several tells


class Sequencer:
    """Answers questions in one thread, which the first of them starts."""

    def __init__(self, workers: int) -> None:
        """Begin with nothing to do.

        Args:
            workers: threads for what is called `aside`: as many as questions run at a time, so
                that none waits for a thread that waits for it.
        """
        self._pool = ThreadPoolExecutor(workers, "aside")
        self._asked: list[Callable[[], None]] = []
        self._steps: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._waiting: dict[tuple[Callable[[Any], None], bool], list[tuple[_Question, Any]]] = {}
        self._ended: list[_Question] = []
        self._running = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, or raise what it raises; it runs in the current context."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        if not self._asked:
            # After all that the loop has received by now: those begin together.
            loop.call_soon(self._hand_over)
        self._asked.append(partial(self.begin, work, copy_context(), answer))
        return await answer

    def close(self) -> None:
        """End the threads, once everything that was asked is answered."""
        self._steps.put(self._close)
        if self._thread is not None:
            self._thread.join()
        self._pool.shutdown()

    def _hand_over(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sequencer", daemon=True)
            self._thread.start()
        for each in self._asked:
            self._steps.put(each)
        self._asked = []

    def _work(self) -> None:
        while not self._closed or self._running:
            self._turn()

    def _turn(self) -> None:
        """Wait for a step; let all that can go on come as far as it can, before it is served."""
        self._steps.get()()
        while self._steps.qsize():
            self._steps.get()()
        while self._waiting:
            self._serve()
        self._answer()

    def _close(self) -> None:
        self._closed = True

    def _serve(self) -> None:
        """Serve all who need what the first one needs, and let them go on."""
        # Nothing of it stays in the thread, which may have nothing else to do for hours.
        serve, long = key = next(iter(self._waiting))
        questions, needs = zip(*self._waiting.pop(key), strict=True)
        if long:
            future = self._pool.submit(_error_of, serve, needs)
            future.add_done_callback(partial(self._served, questions))
        else:
            _go_on(questions, _error_of(serve, needs))

    def _served(
        self, questions: Sequence["_Question"], future: "Future[BaseException | None]"
    ) -> None:
        self._steps.put(partial(_go_on, questions, future.result()))

    def _answer(self) -> None:
        """Tell the loops which questions have ended, each once for all of them."""
        loops = dict[asyncio.AbstractEventLoop, list[_Question]]()
        for each in self._ended:
            loops.setdefault(each.answer.get_loop(), []).append(each)
        self._ended = []
        for loop, ended in loops.items():
            with suppress(RuntimeError):  # closed: nobody waits any more
                loop.call_soon_threadsafe(_tell, ended)

    def wait_for(
        self, serve: Callable[[Sequence[T]], None], need: T, long: bool, question: "_Question"
    ) -> None:
        """Let a question wait, which calls this, until its need was served."""
        self._waiting.setdefault((serve, long), []).append((question, need))
        question.pause()

    def wait_aside(self, call: Callable[[], T], question: "_Question") -> T:
        """Let a question wait, which calls this, for a call in another thread; return its value."""
        future = self._pool.submit(copy_context().run, call)
        future.add_done_callback(lambda _: self.go_on(question))
        question.pause()
        return future.result()

    def go_on(self, question: "_Question") -> None:
        """Let a question go on where it has paused; called in any thread."""
        self._steps.put(question.switch)

    def begin(self, work: Callable[[], Any], context: Context, answer: asyncio.Future[Any]) -> None:
        """Begin a question, and return where it waits or has ended."""
        self._running += 1
        question = _Question(self, work, answer)
        question.gr_context = context
        question.switch()

    def end(self, question: "_Question") -> None:
        """Take a question that has ended, and calls this."""
        self._running -= 1
        self._ended.append(question)


class _Question(greenlet):
    """One question: a coroutine of the sequencer's thread.

    Attributes:
        answer: that the loop waits for.
        returned: once it has ended, what its work returned.
        raised: what it raised, None if it returned.
    """

    def __init__(
        self, sequencer: Sequencer, work: Callable[[], Any], answer: asyncio.Future[Any]
    ) -> None:
        super().__init__(self._run)
        self.sequencer = sequencer
        self.answer = answer
        self.returned: Any = None
        self.raised: BaseException | None = None
        self._work = work

    def pause(self) -> None:
        """Return once somebody switches to this question, which calls this, again."""
        assert self.parent is not None  # the thread's own coroutine
        self.parent.switch()

    def _run(self) -> None:
        try:
            self.returned = self._work()
        except BaseException as error:
            self.raised = error
        self.sequencer.end(self)


def _tell(ended: Sequence[_Question]) -> None:
    for each in ended:
        if each.answer.done():
            continue  # whoever asked has gone
        if each.raised is None:
            each.answer.set_result(each.returned)
        else:
            each.answer.set_exception(each.raised)


def _error_of(serve: Callable[[Any], None], needs: Sequence[Any]) -> BaseException | None:
    """Serve all who need the same; return what that raised, None if nothing."""
    try:
        serve(needs)
    except BaseException as error:
        return error
    return None


def _go_on(questions: Sequence[_Question], error: BaseException | None) -> None:
    """Let questions go on where they wait, or raise an error there."""
    for each in questions:
        if error is None:
            each.switch()
        else:
            each.throw(error)


def together(serve: Callable[[Sequence[T]], None], need: T, *, long: bool = False) -> None:
    """Return once ``serve`` was called with ``need``, in a sequencer with all that need it by then.

    Args:
        serve: equal functions are called once for all; what it raises, all of them raise.
        long: whether it takes so long that other questions go on meanwhile, see `Pace.long`.
    """
    question = getcurrent()
    if isinstance(question, _Question):
        question.sequencer.wait_for(serve, need, long, question)
    else:
        serve([need])


def aside(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a call returns; in a sequencer other questions go on meanwhile."""
    question = getcurrent()
    if isinstance(question, _Question):
        return question.sequencer.wait_aside(partial(call, *args, **kwargs), question)
    return call(*args, **kwargs)


class Pace:
    """Makes calls `aside` as long as they take long: a switch of threads costs some of it, too."""

    def __init__(self) -> None:
        self._seconds = inf  # nobody knows of the first: it may wait for another machine

    @property
    def long(self) -> bool:
        """Whether the next call is to be made aside: it takes about as long as the last ones."""
        return self._seconds > _AT_ONCE_SECONDS

    def call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns, which is made `aside` where it takes long."""
        timed = partial(self.timed, call, *args, **kwargs)
        return aside(timed) if self.long else timed()

    def timed(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns, and note how long it took."""
        since = perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            self._seconds = min(perf_counter() - since, _RISE * self._seconds)


class TaskLock:
    """A lock that who holds it may take again: a thread, or a question of a sequencer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: greenlet | None = None
        self._times = 0
        self._parked: deque[_Question] = deque()

    def __enter__(self) -> Self:
        """Wait for the lock, and take it."""
        task = getcurrent()
        if self._holder is not task:
            while not self._lock.acquire(blocking=False):
                if not (isinstance(task, _Question) and isinstance(self._holder, _Question)):
                    aside(self._lock.acquire)
                    break
                # In no thread: the holder may need one before it lets go.
                self._parked.append(task)
                task.pause()
            self._holder = task
        self._times += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the lock, if it was taken once."""
        self._times -= 1
        if not self._times:
            self._holder = None
            self._lock.release()
            with suppress(IndexError):
                parked = self._parked.popleft()
                parked.sequencer.go_on(parked)


class Lookup(Generic[K, V]):
    """A search that finds many keys at once: questions that come together search once."""

    def __init__(self, find: Callable[[Sequence[K]], Mapping[K, V]]) -> None:
        """Search with ``find``: it returns what was found of distinct keys, by key."""
        self._find = find

    def get(self, key: K) -> V | None:
        """Return what is found of a key as it is from now on, None if that is nothing.

        Raises: what the search raises.
        """
        need = _Need[K, V](key)
        together(self._serve, need)
        return need.found

    def _serve(self, needs: "Sequence[_Need[K, V]]") -> None:
        found = self._find(list(dict.fromkeys(need.key for need in needs)))
        for need in needs:
            need.found = found.get(need.key)


@dataclass
class _Need(Generic[K, V]):
    key: K = field(repr=False)
    found: V | None = field(default=None, repr=False)
