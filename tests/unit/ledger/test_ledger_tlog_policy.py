"""Trust policies: what a file may say, who counts, and when the quorum was complete."""

import json
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import MalformedNote, MalformedTrustPolicy, NoteRejected
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import (
    COSIGNATURE_V1,
    ED25519,
    MLDSA_COSIGNATURE,
    MlDsaPrivateKey,
    NoteSignature,
    SigningKey,
)
from ragaudit.ledger.log.tlog_policy import MAX_COSIGNERS, MAX_GROUPS, MAX_LOGS, TrustPolicy
from ragaudit.ledger.log.tree import MemoryTree

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text("utf-8"))
ORIGIN = "provider.example/ragaudit/w1"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x01" * 32))
KEYS = {
    f"w{i}": SigningKey(f"w{i}.example", COSIGNATURE_V1, PrivateKey.from_seed(bytes([i]) * 32))
    for i in (2, 3, 4, 5)
} | {"w6": SigningKey("w6.example", MLDSA_COSIGNATURE, MlDsaPrivateKey.from_seed(b"\x06" * 32))}
TEXT = Checkpoint(ORIGIN, MemoryTree([b"a", b"b"]).head()).text
LOG_LINE = f"log {LOG.verifier_key} https://provider.example/log"
LINES = [f"witness {name} {key.verifier_key}" for name, key in KEYS.items()]
GROUPS = ["group X 2 w2 w3 w4", "group Y any w5 w6", "group XY all X Y"]


def policy(*lines: str) -> TrustPolicy:
    return TrustPolicy.parse("".join(line + "\n" for line in lines).encode())


WHOLE = (LOG_LINE, *LINES, *GROUPS, "quorum XY")


def note(**times: int) -> bytes:
    """The log's checkpoint with cosignatures at these times."""
    lines = [cosign(TEXT, KEYS[name], time) for name, time in times.items()]
    signed = sign_checkpoint(Checkpoint.parse(TEXT), LOG)
    return signed.note.with_signatures(lines).encode()


def test_two_levels_of_groups() -> None:
    trust = policy(*WHOLE)
    found = trust.judge(note(w2=100, w4=300, w6=200))
    found.demand()
    assert (found.reached, found.time, list(found.cosignatures)) == (True, 300, ["w2", "w4", "w6"])
    assert str(found) == "quorum XY reached: cosigned by w2, w4, w6 (3 of 5)"
    assert found.to_json()["cosigned"] == {"w2": 100, "w4": 300, "w6": 200}
    # A third of X changes nothing but the time: the second of the three completed it.
    assert trust.judge(note(w2=100, w3=150, w4=300, w6=120)).time == 150


@pytest.mark.parametrize(
    "times", [{}, {"w2": 1}, {"w2": 1, "w6": 1}, {"w2": 1, "w3": 1, "w4": 1}, {"w5": 1, "w6": 1}]
)
def test_a_quorum_that_is_not_reached_is_told_and_refused(times: dict[str, int]) -> None:
    found = policy(*WHOLE).judge(note(**times))
    assert (found.reached, found.time) == (False, None)
    with pytest.raises(NoteRejected, match="NOT reached: cosigned by"):
        found.demand()


def test_a_single_cosigner_is_a_quorum() -> None:
    trust = policy(LOG_LINE, *LINES, "quorum w3")
    assert trust.judge(note(w3=7, w2=3)).time == 7
    assert not trust.judge(note(w2=3)).reached


def test_without_a_quorum_all_is_reached_and_no_time_attested() -> None:
    found = policy(LOG_LINE, "quorum none").judge(note())
    found.demand()
    assert (found.reached, found.time) == (True, None)
    assert str(found) == "no quorum is asked: cosigned by nobody (0 of 0)"


def test_cosigners_that_the_policy_does_not_name_do_not_count() -> None:
    assert policy(LOG_LINE, LINES[0], "quorum w2").judge(note(w3=5)).reached is False


def test_a_false_line_of_a_known_cosigner_rejects_the_checkpoint() -> None:
    good = cosign(TEXT, KEYS["w2"], 5)
    false = NoteSignature(good.name, good.key_id, good.blob[:-1] + b"\0")
    data = sign_checkpoint(Checkpoint.parse(TEXT), LOG).note.with_signatures([false]).encode()
    with pytest.raises(NoteRejected, match="does not verify"):
        policy(*WHOLE).judge(data)
    with pytest.raises(NoteRejected, match="does not verify"):
        policy(LOG_LINE, *LINES, "quorum none").judge(data)


def test_only_listed_logs_are_believed() -> None:
    other = SigningKey("other.example/log", ED25519, PrivateKey.from_seed(b"\x09" * 32))
    with pytest.raises(NoteRejected, match="does not list"):
        policy(f"log {other.verifier_key}", "quorum none").judge(note())
    with pytest.raises(NoteRejected, match="does not list"):
        policy("quorum none").judge(note())
    assert policy("quorum none").judge(note(), LOG.verifier_key).reached
    with pytest.raises(NoteRejected, match="does not list"):
        policy(f"log {other.verifier_key}", "quorum none").judge(note(), LOG.verifier_key)
    with pytest.raises(NoteRejected, match="another log"):
        policy(*WHOLE).judge(
            sign_checkpoint(
                Checkpoint("other.example/log", MemoryTree([b"a"]).head()), other
            ).encode(),
            LOG.verifier_key,
        )
    with pytest.raises(MalformedNote):
        policy(*WHOLE).judge(b"text\n")


def test_a_key_of_the_same_origin_must_be_the_listed_one() -> None:
    impostor = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x0a" * 32))
    data = sign_checkpoint(Checkpoint.parse(TEXT), impostor).encode()
    with pytest.raises(NoteRejected, match="no signature"):
        policy(*WHOLE).judge(data)
    with pytest.raises(NoteRejected, match="does not list"):
        policy(*WHOLE).judge(data, impostor.verifier_key)


# --- the file


def test_blanks_comments_and_words_for_thresholds_are_read_and_written_in_one_form() -> None:
    loose = ["", "# us", " \t# them", f"\tlog  {LOG.verifier_key}\t", *LINES]
    loose += ["group G\tall w2 w3", "group H any w4 w5 ", "quorum G", "# end", ""]
    trust = policy(*loose)
    text = trust.encode().decode()
    assert text.split("\n")[:1] == [f"log {LOG.verifier_key}"]
    assert text.endswith("group G 2 w2 w3\ngroup H 1 w4 w5\nquorum G\n")
    assert TrustPolicy.parse(text.encode()) == trust
    assert trust.digest == TrustPolicy.parse(text.encode()).digest


def test_definitions_may_follow_the_quorum() -> None:
    assert len(policy(LINES[0], "quorum w2", LINES[1]).cosigners) == 2


def test_octets_that_are_not_utf8_are_names_too() -> None:
    data = b"witness \xff\xfe " + str(KEYS["w2"].verifier_key).encode() + b"\nquorum \xff\xfe\n"
    assert TrustPolicy.parse(data).encode() == data


def test_keys_that_other_peoples_code_made() -> None:
    text = f"witness w1 {VECTORS['log']['cosigner_vkey']} https://sigsum.org/witness/\n"
    text += f"witness w2 {VECTORS['mldsa']['vkey']}\ngroup g1 all w1 w2\nquorum g1\n"
    trust = TrustPolicy.parse(text.encode())
    assert [each.url for each in trust.cosigners] == ["https://sigsum.org/witness/", None]


TWIN = SigningKey("twin", COSIGNATURE_V1, KEYS["w2"].private).verifier_key
VOUCHER = SigningKey("own", COSIGNATURE_V1, LOG.private).verifier_key
NEXT_KEY = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x0b" * 32)).verifier_key


@for_each(
    ("lines", "number", "message"),
    [
        (["quorums none"], 1, "unknown keyword"),
        (["Quorum none"], 1, "unknown keyword"),
        ([LINES[0], "", "quorum w2 w3"], 3, "2 words after quorum"),
        (["quorum"], 1, "0 words after quorum"),
        (["quorum none", "quorum none"], 2, "a second quorum"),
        (["quorum w2", LINES[0]], 1, "no line before defines"),
        (["quorum none # comment"], 1, "3 words after quorum"),
        (["log"], 1, "0 words after log"),
        ([LOG_LINE + " more"], 1, "3 words after log"),
        ([LOG_LINE, LOG_LINE], 2, "a public key twice"),
        ([LOG_LINE, f"log {NEXT_KEY}"], 2, "two keys of one log"),
        ([f"log {KEYS['w2'].verifier_key}"], 1, "not a log's key"),
        (["log provider.example/ragaudit/w1+00000000+AAAA"], 1, "signature type 0x00"),
        (["log vkey"], 1, "not a verifier key"),
        ([LOG_LINE.replace("https", "ftp")], 1, "URL"),
        ([f"log {LOG.verifier_key} https://"], 1, "URL"),
        ([f"log {LOG.verifier_key} https://[::1/"], 1, "URL"),
        ([f"log {LOG.verifier_key} https://h:99999/"], 1, "URL"),
        ([f"log {LOG.verifier_key} https://me:secret@host/"], 1, "URL"),
        ([f"log {LOG.verifier_key} https://host/?query"], 1, "URL"),
        (["witness w2"], 1, "1 words after witness"),
        ([LINES[0] + " https://host https://host"], 1, "4 words after witness"),
        ([f"witness none {KEYS['w2'].verifier_key}"], 1, "a name that is taken"),
        ([LINES[0], LINES[1].replace("w3 ", "w2 ", 1)], 2, "a name that is taken"),
        ([LINES[0], f"witness twin {TWIN}"], 2, "a public key twice"),
        ([LOG_LINE, f"witness own {VOUCHER}"], 2, "a public key twice"),
        ([f"witness log {LOG.verifier_key}"], 1, "not a cosigner's key"),
        (["group G any"], 1, "2 words after group"),
        (["group G any w2"], 1, "no line before defines"),
        (["group G any none"], 1, "no line before defines"),
        ([LINES[0], "group G any G"], 2, "no line before defines"),
        ([LINES[0], "group w2 any w2"], 2, "a name that is taken"),
        ([LINES[0], "group none any w2"], 2, "a name that is taken"),
        ([LINES[0], "group G any w2 w2"], 2, "a member twice"),
        ([*LINES, "group G any w2", "group H any w2 w3"], 7, "a member twice"),
        ([LINES[0], "group G 0 w2"], 2, "not a threshold"),
        ([LINES[0], "group G 2 w2"], 2, "not a threshold"),
        ([LINES[0], "group G 01 w2"], 2, "not a threshold"),
        ([LINES[0], "group G +1 w2"], 2, "not a threshold"),
        ([LINES[0], "group G \u0661 w2"], 2, "not a threshold"),
        ([LINES[0], "group G none w2"], 2, "not a threshold"),
        ([LINES[0], "quorum w2\r"], 2, "control character"),
        ([LINES[0], "quorum w2\x0b"], 2, "control character"),
        ([LINES[0], "# \x7f"], 2, "control character"),
        (["quorum\u00a0none"], 1, "unknown keyword"),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(
    lines: list[str], number: int, message: str
) -> None:
    with pytest.raises(MalformedTrustPolicy, match=message) as caught:
        policy(*lines)
    assert caught.value.where == f"line {number}"


def test_files_without_quorum_newline_or_end_are_refused() -> None:
    with pytest.raises(MalformedTrustPolicy, match="no quorum line"):
        TrustPolicy.parse(b"")
    with pytest.raises(MalformedTrustPolicy, match="no newline") as caught:
        TrustPolicy.parse(b"# one\nquorum none")
    assert caught.value.where == "line 2"
    with pytest.raises(MalformedTrustPolicy, match="too long"):
        TrustPolicy.parse(b"#" * 2**18 + b"\n")


def vkey(number: int, algorithm: int) -> str:
    private = PrivateKey.from_seed(number.to_bytes(32, "big"))
    return str(SigningKey(f"key.example/{number}", algorithm, private).verifier_key)


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        ([f"log {vkey(i, ED25519)}" for i in range(1, MAX_LOGS + 2)], MAX_LOGS),
        (
            [f"witness w{i} {vkey(i, COSIGNATURE_V1)}" for i in range(1, MAX_COSIGNERS + 2)],
            MAX_COSIGNERS,
        ),
    ],
)
def test_there_are_limits(lines: list[str], most: int) -> None:
    policy(*lines[:most], "quorum none")
    with pytest.raises(MalformedTrustPolicy, match="too many"):
        policy(*lines, "quorum none")


def test_there_is_a_limit_of_groups() -> None:
    nested = [f"group g{i} any g{i - 1}" for i in range(1, MAX_GROUPS + 1)]
    policy(LINES[0], "group g0 any w2", *nested[:-1], "quorum none")
    with pytest.raises(MalformedTrustPolicy, match="too many groups"):
        policy(LINES[0], "group g0 any w2", *nested, "quorum none")


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), st.integers(1, 9)))
def test_the_quorum_and_its_time_are_those_of_the_rule_in_words(times: dict[str, Any]) -> None:
    def holds(at: int) -> bool:
        by = {name for name, time in times.items() if time <= at}
        return len(by & {"w2", "w3", "w4"}) >= 2 and bool(by & {"w5", "w6"})

    expected = next((at for at in range(1, 10) if holds(at)), None)
    assert policy(*WHOLE).judge(note(**times)).time == expected
