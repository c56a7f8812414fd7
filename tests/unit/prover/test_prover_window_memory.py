"""A finished window leaves memory at once, and a thousand of them leave a constant."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from finished_windows import Finished
from ragaudit.prover.background import Background
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store.states import State
from scenario import ProverScenario


def parts(service: Any) -> Iterator[tuple[str, Any]]:
    """Every attribute of the service and of the parts of ours that it reaches."""
    seen, waiting = set[int](), [("service", service)]
    while waiting:
        path, part = waiting.pop()
        if id(part) in seen or not hasattr(part, "__dict__"):
            continue
        seen.add(id(part))
        for name, value in vars(part).items():
            yield f"{path}.{name}", value
            members = value if isinstance(value, (list, tuple)) else [value]
            ours = (each for each in members if type(each).__module__.startswith("ragaudit."))
            waiting.extend((f"{path}.{name}", each) for each in ours)


def named(value: Any, names: tuple[str, str]) -> bool:
    """Whether a container has something under the name of a window, or of its log."""
    if not isinstance(value, (dict, set)):
        return False
    keys = [part for key in value for part in (key if isinstance(key, tuple) else (key,))]
    return any(name in keys for name in names)


def test_nothing_of_a_finished_window_stays(scenario: ProverScenario) -> None:
    finished, service = Finished(scenario), scenario.service
    live, origin = service.open_windows.get("w1"), scenario.policy().origin
    held = {
        "window": live,
        "log": live.log,
        "fence": live.fence,
        "versions": live.versions,
        "epochs": live.epochs,
        **{f"index {number}": index for number, index in enumerate(live.versions.held())},
    }
    left = {name: weakref.ref(each) for name, each in held.items()}
    del live, held
    # Nobody looks for circles in a large process for hours: without one it is gone at once.
    gc.collect()
    gc.disable()
    try:
        finished.archive()
        assert [name for name, each in left.items() if each() is not None] == []
    finally:
        gc.enable()
    service.driver.failures["w1"] = "why"
    assert [path for path, value in parts(service) if named(value, ("w1", origin))] != []
    service.driver.forget("w1")
    service.cosigning.step("w1")
    service.watcher.step()
    assert [path for path, value in parts(service) if named(value, ("w1", origin))] == []


def test_a_thousand_windows_leave_a_constant() -> None:
    window = SimpleNamespace(state=State.ARCHIVED, unusable=None, handed_over=True)
    forgotten: list[str] = []
    background = Background(
        windows=SimpleNamespace(get=lambda _: window, unfinished=list),  # type: ignore[arg-type]
        open_windows=SimpleNamespace(forget=forgotten.append),  # type: ignore[arg-type]
        driver=SimpleNamespace(step=lambda _: False, failures={}, forget=lambda _: None),  # type: ignore[arg-type]
        refresher=SimpleNamespace(step=lambda _: False),  # type: ignore[arg-type]
        cosigning=SimpleNamespace(step=lambda _: False, every_seconds=0),  # type: ignore[arg-type]
        retention=SimpleNamespace(step=lambda: None),  # type: ignore[arg-type]
        timing=TimingSettings(),
    )
    background.start()
    for number in range(1000):
        background.drive(f"w{number}")
        for thread in threading.enumerate():
            if thread.name.endswith(f" w{number}"):
                thread.join()
    assert len(forgotten) == 1000 and not background._driven
    assert len(background._threads) <= 5
    background.stop()
