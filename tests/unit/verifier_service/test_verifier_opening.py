"""Registration, index upload, countersignature, cosigning, activation."""

from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import verify
from verifier_service_harness import WINDOW


def test_a_window_opens(desk, auditor) -> None:
    desk.open_window()
    assert sorted(auditor.seen[0]) == [
        "public/embedder.json",
        "public/empty-checkpoint.txt",
        "public/index/t1/1.bin",
        "public/index/t2/1.bin",
        "public/opening.json",
        "public/policy.json",
    ]
    message = desk.countersign().json()
    verify(
        desk.keys.statement.public,
        bytes.fromhex(message["signature"]),
        "countersignature",
        WINDOW,
        bytes.fromhex(message["policy_digest"]),
        structure("opening-digest", b"\x11" * 32, b"opening"),
        bytes.fromhex(message["activation_anchor"]),
        message["time"],
    )
    assert message["time"] == desk.clock.now
    assert len(auditor.seen) == 1  # the second call gave the stored bytes
