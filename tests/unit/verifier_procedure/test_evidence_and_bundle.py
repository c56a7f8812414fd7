"""Evidence names and the one encoding of a bundle (docs/spec/10-verdict.md §10.1, §2)."""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.items import index_name, response_name
from ragaudit.verifier import bundle as bundle_module
from ragaudit.verifier import bundle as bundles
from ragaudit.verifier.bundle import (
    BLOCK_BYTES,
    Archive,
    MalformedBundle,
    ZipEntry,
    open_bundle,
    read_archive,
    trailer,
    write_bundle,
)
from ragaudit.verifier.evidence import Evidence

ITEMS = {
    "public/policy.json": b"{}", "public/leaves.bin": bytes(96), index_name("acme"): b"index",
    "confidential/records.bin": b"", response_name(7): b"response",
}  # fmt: skip
VERDICT = b"signed"


def archive(items: dict[str, bytes] = ITEMS, part: bundles.Part = "all") -> bytes:
    file = io.BytesIO()
    bundles.write_archive(file, Evidence.of(items), VERDICT, part=part)
    return file.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "policy.json", "public/../policy.json", "/public/policy.json", "public/index/acme/0.bin",
        "public/index/acme/01.bin",
        "public/index/ACME/1.bin", "public/index/a/b/1.bin", "confidential/responses/007.bin",
        "confidential/responses/-1.bin", "confidential/responses/1.bin/x", "public/policy.json\n",
        "public\\policy.json", "",
    ],
)  # fmt: skip
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(MalformedError, match="no evidence item"):
        Evidence.of({name: b""})


def test_evidence_reads_an_item_when_it_is_asked_for(tmp_path: Path) -> None:
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        return ITEMS[name]

    evidence = Evidence(ITEMS, read)
    assert list(evidence) == sorted(ITEMS)
    assert asked == []
    assert evidence["public/policy.json"] == b"{}"
    assert asked == ["public/policy.json"]
    assert "public/clock.json" not in evidence
    with pytest.raises(KeyError):
        evidence["public/clock.json"]
    assert set(evidence.public()) == {n for n in ITEMS if n.startswith("public/")}


def test_evidence_in_a_folder(tmp_path: Path) -> None:
    for name, data in ITEMS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert dict(Evidence.from_directory(tmp_path)) == ITEMS
    (tmp_path / "public/clock.json").symlink_to(tmp_path / "public/policy.json")
    with pytest.raises(MalformedError, match="link"):
        Evidence.from_directory(tmp_path)


def test_what_is_no_bundle_is_called_so_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    for content in (b"", b"{}", b"PK", b"PK\5\6" + bytes(18), b"not a zip file at all"):
        path.write_bytes(content)
        with (
            pytest.raises(MalformedBundle, match=r"broken\.json: not an evidence bundle"),
            open_bundle(path),
        ):
            pass
    path.write_bytes(archive()[:-1])
    with (
        pytest.raises(MalformedBundle, match=r"broken\.json: .*archive's directory"),
        open_bundle(path),
    ):
        pass
    for absent in (tmp_path / "none.zip", tmp_path):
        with pytest.raises(MalformedBundle, match=f"{absent}: cannot be read"), open_bundle(absent):
            pass


@pytest.mark.parametrize("part", ["all", "public"])
def test_round_trip_and_reproducibility(tmp_path: Path, part: bundles.Part) -> None:
    for name in ("a.zip", "b.zip"):
        write_bundle(tmp_path / name, Evidence.of(ITEMS), VERDICT, part=part)
    data = (tmp_path / "a.zip").read_bytes()
    assert data == (tmp_path / "b.zip").read_bytes()
    with open_bundle(tmp_path / "a.zip") as bundle:
        expected = {n: d for n, d in ITEMS.items() if part == "all" or n.startswith("public/")}
        assert dict(bundle.evidence) == expected
        assert (bundle.part, bundle.verdict) == (part, VERDICT)


def test_other_tools_can_read_a_bundle() -> None:
    with zipfile.ZipFile(io.BytesIO(archive())) as file:
        assert file.testzip() is None
        assert file.namelist() == sorted([*ITEMS, "manifest.json", "verdict.json"])
        assert all(file.read(name) == data for name, data in ITEMS.items())
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_other_tools_can_read_many_entries() -> None:
    items = {response_name(i): b"" for i in range(66_000)}
    data = archive(items)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert len(file.namelist()) == 66_002
    assert len(read_archive(io.BytesIO(data)).evidence) == 66_000


def test_other_tools_can_read_far_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pretend that offsets of 100 bytes do not fit the 32-bit fields any more.
    monkeypatch.setattr(bundle_module, "_FAR", 100)
    data = archive()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert all(file.read(name) == content for name, content in ITEMS.items())
    assert dict(read_archive(io.BytesIO(data)).evidence) == ITEMS


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_changed_byte_is_accepted(data: st.DataObject) -> None:
    good = archive()
    at = data.draw(st.integers(0, len(good) - 1))
    bit = data.draw(st.integers(0, 7))
    bad = bytearray(good)
    bad[at] ^= 1 << bit
    try:
        bundle = read_archive(io.BytesIO(bytes(bad)))
    except MalformedBundle:
        return
    # The verdict is no item of the manifest: its own signature protects it.
    assert bundle.verdict != VERDICT
    assert dict(bundle.evidence) == ITEMS


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(archive()) - 1))
def test_no_truncation_is_accepted(size: int) -> None:
    with pytest.raises(MalformedBundle):
        read_archive(io.BytesIO(archive()[:size]))


@pytest.mark.parametrize("more", [b"\0", b"PK\5\6", archive()])
def test_nothing_may_follow(more: bytes) -> None:
    with pytest.raises(MalformedBundle, match="directory or end"):
        read_archive(io.BytesIO(archive() + more))


def foreign(build: "list[tuple[str, bytes]]", **options: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as out:  # type: ignore[call-overload]
        for name, data in build:
            info = zipfile.ZipInfo(name)
            info.compress_type = options.get("compression", zipfile.ZIP_STORED)
            out.writestr(info, data)
    return file.getvalue()


def test_archives_of_other_tools_are_refused() -> None:
    with pytest.raises(MalformedBundle, match="compressed"):
        read_archive(
            io.BytesIO(foreign([("manifest.json", b"a" * 99)], compression=zipfile.ZIP_DEFLATED))
        )
    with pytest.raises(MalformedBundle, match="one accepted form"):
        read_archive(io.BytesIO(foreign([("manifest.json", b"{}")])))
    with pytest.raises(MalformedBundle):
        read_archive(io.BytesIO(b""))


def test_encrypted_entries_are_refused() -> None:
    data = bytearray(archive())
    struct.pack_into("<H", data, 6, 1)
    with pytest.raises(MalformedBundle, match="encrypted"):
        read_archive(io.BytesIO(bytes(data)))


def built(entries: list[tuple[str, bytes]]) -> bytes:
    """A well-formed archive of exactly these entries, in this order."""
    data = b""
    listed: list[Any] = []
    for name, content in entries:
        offset = listed[-1].end if listed else 0
        entry = ZipEntry(name.encode(), len(content), zlib.crc32(content), offset)
        data += entry.local_header() + content
        listed.append(entry)
    return data + trailer(listed)


def manifest(items: dict[str, str], **changes: object) -> bytes:
    return canonical_json.dumps(
        {"format": bundles.FORMAT, "items": items, "part": "all", **changes}
    )


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
LEAVES = "public/leaves.bin"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([("manifest.json", manifest({}))], "missing"),
        ([("verdict.json", b"")], "missing"),
        ([("verdict.json", b""), ("manifest.json", manifest({}))], "order"),
        (
            [("manifest.json", manifest({})), ("manifest.json", b""), ("verdict.json", b"")],
            "repeat",
        ),
        ([("../x", b""), ("manifest.json", manifest({"../x": EMPTY})), ("verdict.json", b"")], "x"),
        ([("manifest.json", manifest({LEAVES: EMPTY})), ("verdict.json", b"")], "absent"),
        ([("manifest.json", manifest({})), (LEAVES, b""), ("verdict.json", b"")], "not listed"),
        (
            [("manifest.json", manifest({LEAVES: EMPTY})), (LEAVES, b"x"), ("verdict.json", b"")],
            "another digest",
        ),
        ([("manifest.json", manifest({}, part="some")), ("verdict.json", b"")], "manifest"),
        ([("manifest.json", manifest({}, format="x")), ("verdict.json", b"")], "manifest"),
        ([("manifest.json", manifest({}, more=1)), ("verdict.json", b"")], "manifest"),
        ([("manifest.json", manifest({}) + b" "), ("verdict.json", b"")], "canonical|JSON"),
        (
            [
                ("confidential/records.bin", b""),
                ("manifest.json", manifest({"confidential/records.bin": EMPTY}, part="public")),
                ("verdict.json", b""),
            ],
            "confidential item",
        ),
        ([("m" * 129, b""), ("verdict.json", b"")], "not an item name"),
    ],
)
def test_bundles_that_hide_or_lack_something(entries: list[tuple[str, bytes]], reason: str) -> None:
    with pytest.raises(MalformedBundle, match=reason):
        read_archive(io.BytesIO(built(entries)))


def test_too_long_items(monkeypatch: pytest.MonkeyPatch) -> None:
    data = archive()
    monkeypatch.setattr(bundles, "MAX_ITEM_BYTES", 50)
    with pytest.raises(MalformedBundle, match="too long"):
        archive()
    with pytest.raises(MalformedBundle, match="too long"):
        read_archive(io.BytesIO(data))


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def read(name: str) -> bytes:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        write_bundle(tmp_path / "b.zip", Evidence(ITEMS, read), VERDICT, part="all")
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_an_archive_is_that_part_of_the_whole() -> None:
    long = bytes(range(256)) * (BLOCK_BYTES // 100)  # of several blocks
    evidence = Evidence.of({**ITEMS, "confidential/records.bin": long, "public/leaves.bin": b""})
    archive = Archive.of(evidence, VERDICT, part="all")
    whole = b"".join(archive.pieces())
    assert len(whole) == archive.size
    # Around every boundary of an item, of a block, and of the directory.
    edges = {entry.offset for entry, _ in archive._entries}
    edges |= {entry.data_offset for entry, _ in archive._entries} | {archive.size}
    edges |= {edge + BLOCK_BYTES for edge in edges}
    for edge in edges:
        for start in range(max(0, edge - 1), edge + 2):
            assert b"".join(archive.pieces(start)) == whole[start:]
    again = Archive.of(evidence, VERDICT, part="all")
    assert again.tag == archive.tag
    assert Archive.of(evidence, VERDICT, part="public").tag != archive.tag
    assert Archive.of(evidence, VERDICT + b" ", part="all").tag != archive.tag
