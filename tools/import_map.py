"""Draw who imports whom, from the imports themselves, into docs/architecture.md.

Run `python tools/import_map.py` after members or their imports changed; a test holds the picture.
`python tools/import_map.py ragaudit.prover` prints the picture of one package's parts instead.
"""

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
FENCE = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)

Arrows = Mapping[str, frozenset[str]]
"""What each box imports directly, boxes named as they are shown."""


def members() -> Arrows:
    """Return the imports between the packages that the import contracts speak of."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names: list[str] = settings["tool"]["importlinter"]["root_packages"]
    return _arrows(names, names, "ragaudit.")


def parts(package: str) -> Arrows:
    """Return the imports between the modules and packages directly inside ``package``."""
    root = ".".join(package.split(".")[:2])
    inside = _graph([root]).find_children(package)
    return _arrows([root], sorted(inside), package + ".")


def _graph(packages: list[str]) -> grimp.ImportGraph:
    first, *others = packages
    # What is imported for annotations alone is no dependency of what runs.
    return grimp.build_graph(first, *others, exclude_type_checking_imports=True, cache_dir=None)


def _arrows(packages: list[str], boxes: list[str], prefix: str) -> Arrows:
    graph = _graph(packages)
    found: dict[str, set[str]] = {box.removeprefix(prefix): set() for box in boxes}
    for module in graph.modules:
        importer = _box(module, boxes)
        for target in graph.find_modules_directly_imported_by(module) if importer else ():
            imported = _box(target, boxes)
            if importer and imported and imported != importer:
                found[importer.removeprefix(prefix)].add(imported.removeprefix(prefix))
    return {name: frozenset(targets) for name, targets in found.items()}


def _box(module: str, boxes: list[str]) -> str | None:
    """Return the box that holds ``module``."""
    return next((box for box in boxes if f"{module}.".startswith(f"{box}.")), None)


def below(arrows: Arrows) -> Arrows:
    """Return everything that each box reaches, itself included if it is in a circle."""
    reached = {name: set(targets) for name, targets in arrows.items()}
    for _ in arrows:
        for targets in reached.values():
            targets |= {deeper for target in targets for deeper in reached[target]}
    return {name: frozenset(targets) for name, targets in reached.items()}


def reduced(arrows: Arrows) -> Arrows:
    """Return the arrows that no longer way implies; the reduction of a graph without circles."""
    reach = below(arrows)
    return {
        name: frozenset(
            target
            for target in targets
            if not any(target in reach[other] for other in targets - {target})
        )
        for name, targets in arrows.items()
    }


def picture(arrows: Arrows) -> str:
    """Return the Mermaid text: importers above what they import, implied arrows left out."""
    reach = below(arrows)
    order = sorted(arrows, key=lambda name: (-len(reach[name]), name))
    kept = reduced(arrows)
    lines = ["flowchart TD"]
    for name in order:
        lines += [f"    {name} --> {target}" for target in order if target in kept[name]]
        if not kept[name] and not any(name in targets for targets in kept.values()):
            lines.append(f"    {name}")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the architecture page ``text`` with its picture drawn anew."""
    drawn, count = FENCE.subn(lambda _: picture(members()), text)
    if count != 1:
        raise ValueError(f"{PAGE.name} has {count} pictures, expected one")
    return drawn


if __name__ == "__main__":
    if sys.argv[1:]:
        print(picture(parts(sys.argv[1])), end="")
    else:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
