"""The workspace stays one namespace of separately installable members."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _members() -> list[Path]:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    return [ROOT / name for name in workspace["members"]]


def test_no_member_claims_the_namespace() -> None:
    """A stray ``ragaudit/__init__.py`` would hide every other member."""
    for member in _members():
        for source in ("src", "python"):
            assert not (member / source / "ragaudit" / "__init__.py").exists(), member


def test_every_package_is_typed_and_in_the_contracts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    found = []
    for member in _members():
        source = member / ("python" if member.name == "rust" else "src") / "ragaudit"
        packages = [
            path for path in source.iterdir() if path.is_dir() and path.name != "__pycache__"
        ]
        assert packages and all((each / "py.typed").exists() for each in packages), packages
        found += [f"ragaudit.{each.name}" for each in packages]
    assert sorted(found) == sorted(settings["root_packages"])


def test_the_verifier_depends_on_neither_prover_nor_toolchain() -> None:
    project = tomllib.loads((ROOT / "verifier" / "pyproject.toml").read_text())["project"]
    names = {entry.split("[")[0].split(">")[0].split("=")[0] for entry in project["dependencies"]}
    assert not names & {
        "ragaudit-prover",
        "ragaudit-core",
        "ragaudit-client",
        "ragaudit-lab",
        "maturin",
    }


def test_dependencies_are_pinned_to_ranges() -> None:
    for member in _members():
        project = tomllib.loads((member / "pyproject.toml").read_text())["project"]
        for entry in project.get("dependencies", []):
            if not entry.startswith("ragaudit-"):
                assert ">=" in entry and "<" in entry, (member.name, entry)
