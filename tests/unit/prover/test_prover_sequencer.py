"""Questions that are answered in one thread: who waits for what, and who goes on meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import pytest
from ragaudit.prover.sequencer import Pace, Sequencer, TaskLock, aside, together

PATIENCE = 30


@pytest.fixture
def sequencer() -> Iterator[Sequencer]:
    made = Sequencer(4)
    yield made
    made.close()


def asked(sequencer: Sequencer, *works: Callable[[], Any]) -> list[Any]:
    """Ask all at once; return what came of each, an error as it is."""

    async def ask() -> list[Any]:
        running = [sequencer.run(work) for work in works]
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*running, return_exceptions=True)

    return asyncio.run(ask())


def test_what_questions_return_and_raise_comes_to_who_asked(sequencer: Sequencer) -> None:
    def fails() -> None:
        raise KeyError("mine")

    found = asked(sequencer, lambda: 1, fails, threading.current_thread)
    assert found[0] == 1 and isinstance(found[1], KeyError)
    assert found[2].name == "sequencer"


def test_questions_that_come_together_are_served_together(sequencer: Sequencer) -> None:
    served: list[Sequence[int]] = []

    def question(number: int) -> Callable[[], int]:
        def work() -> int:
            together(served.append, number)
            return number

        return work

    assert asked(sequencer, *map(question, range(5))) == list(range(5))
    # `append` is one function for all: bound methods of one object are equal.
    assert served == [tuple(range(5))]


def test_each_thing_is_served_for_those_who_need_it(sequencer: Sequencer) -> None:
    first: list[Sequence[int]] = []
    second: list[Sequence[int]] = []

    def work(number: int) -> Callable[[], None]:
        def both() -> None:
            if number % 2:
                together(first.append, number)
            together(second.append, number)

        return both

    asked(sequencer, *map(work, range(4)))
    assert first == [(1, 3)] and sorted(n for each in second for n in each) == [0, 1, 2, 3]


def test_what_takes_long_for_many_is_done_beside_the_others(sequencer: Sequencer) -> None:
    served: list[tuple[Sequence[int], str]] = []
    gate = threading.Event()

    def slow(needs: Sequence[int]) -> None:
        gate.wait(PATIENCE)
        served.append((needs, threading.current_thread().name))

    def fails(_needs: Sequence[int]) -> None:
        raise OSError("no disk")

    works = [lambda n=number: together(slow, n, long=True) for number in range(3)]
    found = asked(sequencer, *works, lambda: together(fails, 0, long=True), gate.set)
    assert found[:3] == [None] * 3 and isinstance(found[3], OSError)
    ((needs, name),) = served
    assert [*needs] == [0, 1, 2] and name.startswith("aside")


def test_an_error_of_what_is_served_is_everybodys_who_needs_it(sequencer: Sequencer) -> None:
    def serve(_needs: Sequence[int]) -> None:
        raise OSError("no disk")

    def caught() -> str:
        try:
            together(serve, 1)
        except OSError as error:
            return str(error)
        return "served"

    found = asked(sequencer, lambda: together(serve, 0), caught, lambda: "other")
    assert isinstance(found[0], OSError) and found[1:] == ["no disk", "other"]


def test_outside_a_sequencer_one_is_served_alone_and_nothing_goes_aside() -> None:
    served: list[Sequence[int]] = []
    together(served.append, 1)
    assert served == [[1]] and aside(threading.current_thread) is threading.current_thread()


def test_others_go_on_while_one_waits_aside(sequencer: Sequencer) -> None:
    gate = threading.Event()

    def waits() -> bool:
        return aside(gate.wait, PATIENCE)

    # The second opens the gate, in the thread that the first would hold otherwise.
    assert asked(sequencer, waits, gate.set) == [True, None]


def test_an_error_aside_is_raised_where_it_was_called(sequencer: Sequencer) -> None:
    def fails() -> None:
        raise ValueError("aside")

    def work() -> str:
        with pytest.raises(ValueError, match="aside"):
            aside(fails)
        return threading.current_thread().name

    assert asked(sequencer, work) == ["sequencer"]


def test_each_question_has_the_context_in_which_it_was_asked(sequencer: Sequencer) -> None:
    who: ContextVar[str] = ContextVar("who")

    async def ask(name: str) -> list[str]:
        who.set(name)

        def work() -> list[str]:
            found = [who.get()]
            together(lambda _needs: None, 0)
            found.append(who.get())
            return [*found, aside(who.get)]

        return await sequencer.run(work)

    async def both() -> list[list[str]]:
        return [*await asyncio.gather(ask("ada"), ask("bob"))]

    assert asyncio.run(both()) == [["ada"] * 3, ["bob"] * 3]


def test_a_lock_is_its_holders_until_it_was_given_back_as_often(sequencer: Sequencer) -> None:
    lock, order = TaskLock(), list[str]()

    def work(name: str) -> Callable[[], None]:
        def both() -> None:
            with lock:
                with lock:
                    order.append(name)
                    aside(threading.Event().wait, 0.01)
                order.append(name)

        return both

    asked(sequencer, work("a"), work("b"), work("c"))
    assert [order[at] == order[at + 1] for at in (0, 2, 4)] == [True] * 3 and len(order) == 6


def test_who_waits_for_a_lock_takes_no_thread_that_its_holder_needs() -> None:
    sequencer, lock, done = Sequencer(1), TaskLock(), list[int]()

    def work(number: int) -> Callable[[], None]:
        def held() -> None:
            with lock:
                aside(done.append, number)

        return held

    asked(sequencer, *map(work, range(5)))
    sequencer.close()
    assert done == list(range(5))


def test_a_lock_excludes_threads_and_questions_alike(sequencer: Sequencer) -> None:
    lock, free = TaskLock(), threading.Event()

    def question() -> bool:
        with lock:
            return free.is_set()

    def thread() -> None:
        with lock:
            held.set()
            free.wait(PATIENCE)

    held = threading.Event()
    running = threading.Thread(target=thread)
    running.start()
    held.wait(PATIENCE)
    assert asked(sequencer, question, free.set) == [True, None]
    running.join()


def test_what_took_long_goes_aside_the_next_time(sequencer: Sequencer) -> None:
    pace, long = Pace(), threading.Event()

    def slow() -> str:
        long.wait(0.01)
        return threading.current_thread().name

    for _ in range(3):
        assert asked(sequencer, lambda: pace.call(slow))[0].startswith("aside")
    quick = Pace()
    names = [
        asked(sequencer, lambda: quick.call(threading.current_thread))[0].name for _ in range(20)
    ]
    # Nothing is known of the first; any of the others may be held up once, but not all of them.
    assert names[0].startswith("aside") and "sequencer" in names


def test_a_caller_who_went_away_stops_nobody(sequencer: Sequencer) -> None:
    gate = threading.Event()

    async def ask() -> int:
        gone = asyncio.ensure_future(sequencer.run(lambda: aside(gate.wait, PATIENCE)))
        await asyncio.sleep(0)
        gone.cancel()
        gate.set()
        return await sequencer.run(lambda: 2)

    assert asyncio.run(ask()) == 2


def test_who_closes_it_waits_for_what_was_asked() -> None:
    sequencer, gate, done = Sequencer(1), threading.Event(), list[int]()

    def work() -> None:
        aside(gate.wait, PATIENCE)
        done.append(1)

    async def ask() -> None:
        running = asyncio.ensure_future(sequencer.run(work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(asyncio.to_thread(sequencer.close))
        await asyncio.to_thread(gate.wait, 0.05)
        assert not closing.done()
        gate.set()
        await asyncio.gather(running, closing)

    asyncio.run(ask())
    assert done == [1]
    Sequencer(1).close()  # nobody asked


def test_each_loop_is_told_of_its_own_questions(sequencer: Sequencer) -> None:
    """Of one that has ended meanwhile nobody is told, and the others are answered."""
    gate = threading.Event()

    async def leave() -> None:
        asking = asyncio.ensure_future(sequencer.run(lambda: aside(gate.wait, PATIENCE)))
        await asyncio.sleep(0.05)
        asking.cancel()

    asyncio.run(leave())
    gate.set()
    assert asked(sequencer, lambda: 1) == [1]
