"""What comes from outside: licences and sources of the crates, one compiler, one list of targets.

`make audit` asks the advisory databases, which need a network; this needs what is built with.
"""

import json
import re
import subprocess
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUST = ROOT / "circuits" / "rust"


def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def packages() -> list[dict[str, Any]]:
    """The packages of Cargo.lock that this machine's builds use, as cargo describes them."""
    target = re.search(r"host: (\S+)", _output("rustc", "-vV"))
    assert target is not None
    words = ("--format-version", "1", "--locked", "--offline", "--filter-platform", target[1])
    found: list[dict[str, Any]] = json.loads(_output("cargo", "metadata", *words))["packages"]
    return found


def _output(*words: str) -> str:
    done = subprocess.run(words, cwd=RUST, capture_output=True, text=True, check=False)
    if "--offline" in words and done.returncode != 0:
        pytest.skip(f"the crates are not on this machine: make rust-test ({done.stderr[-300:]})")
    assert done.returncode == 0, done.stderr
    return done.stdout


def allows(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression of `OR`, `AND` and `WITH` can be met with ``allowed``."""
    tokens = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", expression.replace("/", " OR "))
    words = {"(": "(", ")": ")", "OR": "or", "AND": "and"}
    return bool(eval(" ".join(words.get(each, repr(each in allowed)) for each in tokens)))


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT OR GPL-3.0", True),
        ("Unlicense/MIT", True),
        ("(MIT OR GPL-3.0) AND Zlib", True),
        ("MIT AND GPL-3.0", False),
        ("MIT WITH Classpath-exception-2.0", False),
        ("GPL-3.0", False),
    ],
)
def test_expressions_are_read_as_they_are_meant(expression: str, allowed: bool) -> None:
    assert allows(expression, {"MIT", "Zlib"}) == allowed


def test_every_crate_has_a_licence_that_is_allowed() -> None:
    allowed = set(toml(RUST / "deny.toml")["licenses"]["allow"])
    refused = {
        each["name"]: each["license"]
        for each in packages()
        if not each["license"] or not allows(each["license"], allowed)
    }
    assert not refused


def test_every_crate_comes_from_crates_io_or_from_here() -> None:
    for lock in RUST.rglob("Cargo.lock"):
        sources = {each["source"] for each in toml(lock)["package"] if "source" in each}
        kinds = {source.partition("+")[0] for source in sources}
        assert (len(sources), kinds) == (1, {"registry"}), lock


def test_no_crate_that_is_banned_is_locked() -> None:
    banned = {each["crate"] for each in toml(RUST / "deny.toml")["bans"]["deny"]}
    locked = {each["name"] for each in toml(RUST / "Cargo.lock")["package"]}
    assert not banned & locked


def test_what_is_not_shipped_is_locked_apart_and_in_no_image() -> None:
    """The comparison with Groth16 rests on `derivative`, which nobody maintains any more."""
    apart = set(toml(RUST / "Cargo.toml")["workspace"]["exclude"])
    assert apart == {"fuzz", "groth16-comparison"}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"circuits/rust/{name}" for name in apart} <= set(ignored)
    for lock in (RUST / "Cargo.lock", RUST / "fuzz" / "Cargo.lock"):
        assert "derivative" not in {each["name"] for each in toml(lock)["package"]}, lock


def test_one_compiler_builds_everything() -> None:
    channel = toml(RUST / "rust-toolchain.toml")["toolchain"]["channel"]
    for service in ("prover", "verifier"):
        dockerfile = (ROOT / service / "Dockerfile").read_text(encoding="utf-8")
        assert re.findall(r"^ARG RUST_IMAGE=rust:([\d.]+)-", dockerfile, re.MULTILINE) == [channel]
    promised = toml(RUST / "Cargo.toml")["workspace"]["package"]["rust-version"]
    assert [*map(int, promised.split("."))] <= [*map(int, channel.split("."))]


def test_the_makefile_fuzzes_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.search(r"^FUZZ_TARGETS = ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert listed is not None
    targets = {path.stem for path in (RUST / "fuzz" / "fuzz_targets").glob("*.rs")}
    assert set(listed[1].replace("\\", " ").split()) == targets


def test_the_hosted_file_runs_what_is_run_here() -> None:
    hosted = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: .ci/run" in hosted
    assert "run: make audit" in hosted
    used = re.findall(r"uses: (\S+)", hosted)
    assert used
    assert all(re.search(r"@v\d+\.\d+\.\d+$", each) for each in used), used
