"""What is made from a verdict for other tools (docs/spec/10-verdict.md §10.7): what it may say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.signed import Envelope, key_id
from ragaudit.ledger.messages.verdict import WORTHLESS, Verdict
from ragaudit.ledger.messages.verdict_exports import AuditFinding, NothingPassed, VerificationResult
from ragaudit.verifier.procedure import CHECKS, CheckResult, Outcome, Status
from ragaudit.verifier.report.oscal import assessment_results, uuid_of
from report_cases import DIGESTS, KEY, outcome, signed
from report_cases_claims import unnoised
from trestle.core.duplicates_validator import DuplicatesValidator
from trestle.core.refs_validator import RefsValidator
from trestle.oscal.assessment_results import AssessmentResults

OTHER = PrivateKey.from_seed(b"o" * 32)
ALL = {"mode": "A", "strata": []}


def claimed(**statuses: Status) -> Outcome:
    """An outcome with both claims, some checks' statuses changed; the result as they give it."""
    checks = tuple(
        CheckResult(c.number, c.id, c.title, statuses.get(c.id, Status.PASS), f"said of {c.id}")
        for c in CHECKS
    )
    return outcome(checks=checks)


def properties(value: Outcome) -> list[str]:
    return list(VerificationResult.of(signed(value)).properties)


def of_claims(value: Outcome) -> list[str]:
    return [name for name in properties(value) if "_CHECK_" not in name]


class TestVerificationResult:
    def test_the_statement_is_what_the_specification_says(self) -> None:
        verdict = signed(replace(claimed(), sampling=ALL))
        assert json.loads(VerificationResult.of(verdict).encode()) == {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [
                {"name": "confidential/records.bin", "digest": {"sha256": "cd" * 32}},
                {"name": "public/policy.json", "digest": {"sha256": "ab" * 32}},
            ],
            "predicateType": "https://in-toto.io/attestation/svr/v0.2",
            "predicate": {
                "https://ragaudit.dev/verdict-digest": {"sha256": verdict.digest},
                "properties": [
                    "RAGAUDIT_VERDICT_PASS",
                    "RAGAUDIT_INTEGRITY_PASS",
                    "RAGAUDIT_PRIVACY_PASS",
                    *(f"RAGAUDIT_CHECK_{c.id.upper().replace('-', '_')}_PASS" for c in CHECKS[:-1]),
                    "RAGAUDIT_CHECK_ROWS_PASS_OF_SAMPLE",
                ],
                "timeCreated": "2023-11-14T22:13:20Z",
                "verifier": {
                    "id": f"https://ragaudit.dev/verdict/v1#{key_id(KEY.public)}",
                    "policies": [{"name": "public/policy.json", "digest": {"sha256": "ab" * 32}}],
                },
            },
        }

    def test_what_rests_on_a_sample_says_so(self) -> None:
        found = properties(claimed())
        assert [name for name in found if name.endswith("_OF_SAMPLE")] == [
            *(f"RAGAUDIT_{name}_PASS_OF_SAMPLE" for name in ("VERDICT", "INTEGRITY", "PRIVACY")),
            *(
                f"RAGAUDIT_CHECK_{name}_PASS_OF_SAMPLE"
                for name in ("SEED", "EMBEDDING", "SELECTION", "CHARGES", "REPLAY", "ROWS")
            ),
        ]

    def test_an_unknown_mode_is_a_sample(self) -> None:
        assert "RAGAUDIT_VERDICT_PASS_OF_SAMPLE" in properties(replace(claimed(), sampling={}))

    @pytest.mark.parametrize(
        "status", [s for s in Status if s not in (Status.PASS, Status.NOT_APPLICABLE)]
    )
    def test_a_check_that_did_not_pass_is_not_named(self, status: Status) -> None:
        value = replace(claimed(coalition=status), sampling=ALL)
        assert "RAGAUDIT_CHECK_COALITION_PASS" not in properties(value)
        assert "RAGAUDIT_PRIVACY_PASS" not in properties(value)
        assert of_claims(value) == ["RAGAUDIT_INTEGRITY_PASS"]

    def test_without_noise_nothing_is_said_of_privacy(self) -> None:
        value = replace(unnoised(), sampling=ALL)
        assert of_claims(value) == ["RAGAUDIT_VERDICT_PASS", "RAGAUDIT_INTEGRITY_PASS"]
        assert "RAGAUDIT_CHECK_EPSILON_PASS" not in properties(value)

    def test_a_vector_that_nobody_could_check_is_not_said_to_be_checked(self) -> None:
        value = replace(claimed(embedding=Status.NOT_ESTABLISHED), sampling=ALL)
        assert "RAGAUDIT_VERDICT_PASS" in properties(value)
        assert "RAGAUDIT_CHECK_EMBEDDING_PASS" not in properties(value)

    @pytest.mark.parametrize(
        "value",
        [
            claimed(log=Status.FAIL),
            outcome("FAIL"),
            outcome("REFUSED"),
        ],
        ids=["claims", "fail", "refused"],
    )
    def test_of_a_verdict_that_claims_nothing_there_is_none(self, value: Outcome) -> None:
        with pytest.raises(NothingPassed, match="none of its claims passed"):
            VerificationResult.of(signed(value))

    def test_of_a_worthless_verdict_there_is_none(self) -> None:
        with pytest.raises(NothingPassed, match="worthless"):
            VerificationResult.of(signed(replace(claimed(), worthless=True)))

    def test_a_time_that_has_no_timestamp_is_refused(self) -> None:
        with pytest.raises(MalformedError, match="RFC 3339"):
            VerificationResult.of(signed(claimed(), time=2**52))

    def test_signed_it_is_read_with_the_verdicts_key_alone(self) -> None:
        result = VerificationResult.of(signed(claimed()))
        envelope = result.issue(KEY)
        assert VerificationResult.verify(envelope, KEY.public) == result
        assert envelope == result.issue(KEY)
        with pytest.raises(RejectedError, match="another key"):
            VerificationResult.verify(envelope, OTHER.public)
        with pytest.raises(RefusedError, match="not the key"):
            result.issue(OTHER)

    def test_a_result_about_a_verdict_by_another_key_is_rejected(self) -> None:
        result = VerificationResult.of(signed(claimed()))
        envelope = Envelope.seal(result.encode(), OTHER)
        with pytest.raises(RejectedError, match="a verdict by another key"):
            VerificationResult.verify(envelope, OTHER.public)

    def test_a_changed_envelope_is_rejected(self) -> None:
        envelope = json.loads(VerificationResult.of(signed(claimed())).issue(KEY))
        changed = VerificationResult.of(signed(replace(claimed(), sampling=ALL))).encode()
        envelope["payload"] = b64_encode(changed)
        with pytest.raises(RejectedError, match="does not verify"):
            VerificationResult.verify(canonical_json.dumps(envelope), KEY.public)

    def test_a_verdict_is_no_result_and_a_result_no_verdict(self) -> None:
        verdict = outcome().sign(KEY, DIGESTS, time=1)
        with pytest.raises(MalformedError, match="not a simple verification result"):
            VerificationResult.verify(verdict, KEY.public)
        with pytest.raises(MalformedError, match="another statement or predicate type"):
            Verdict.verify(VerificationResult.of(signed(claimed())).issue(KEY), KEY.public)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("_type",), "https://in-toto.io/Statement/v0.1"),
            (("predicateType",), "https://in-toto.io/attestation/svr/v0.1"),
            (("more",), 1),
            (("predicate", "properties"), []),
            (("predicate", "properties"), [1]),
            (("predicate", "timeCreated"), "yesterday"),
            (("predicate", "verifier", "policies"), []),
            (("predicate", "verifier", "more"), 1),
            (("predicate", "more"), 1),
            (("predicate", "https://ragaudit.dev/verdict-digest"), {"sha256": "ab"}),
            (("predicate", "https://ragaudit.dev/verdict-digest"), {}),
            (("subject",), [{"name": "elsewhere", "digest": {"sha256": "ab" * 32}}]),
        ],
    )
    def test_other_members_are_refused(self, path: tuple[str, ...], value: object) -> None:
        result = VerificationResult.of(signed(claimed()))
        document = result.to_json()
        inner: Any = document
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value
        assert VerificationResult.parse(result.encode()) == result
        with pytest.raises(MalformedError):
            VerificationResult.parse(canonical_json.dumps(document))


def document(value: Outcome, **members: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(assessment_results(signed(value, **members)))
    return found["assessment-results"]


def read_by_trestle(data: bytes, folder: Path) -> AssessmentResults:
    """The model as compliance-trestle reads it: every member known, typed, and in its place."""
    path = folder / "assessment-results.json"
    path.write_bytes(data)
    found = AssessmentResults.oscal_read(path)
    assert isinstance(found, AssessmentResults)
    return found


REFUSED = replace(
    outcome("REFUSED"),
    checks=tuple(CheckResult(c.number, c.id, c.title, Status.FAIL, "no") for c in CHECKS[:4]),
    scope={},
    not_covered=(),
    assumptions=(),
)
OUTCOMES = {
    "pass": claimed(),
    "fail": claimed(log=Status.FAIL, selection=Status.NOT_RUN),
    "exceeded": claimed(coalition=Status.EXCEEDED),
    "unnoised": unnoised(),
    "worthless": replace(claimed(), worthless=True),
    "refused": REFUSED,
}


class TestAssessmentResults:
    @pytest.mark.parametrize("name", OUTCOMES)
    def test_compliance_trestle_reads_it(self, name: str, tmp_path: Path) -> None:
        data = assessment_results(signed(OUTCOMES[name]))
        model = read_by_trestle(data, tmp_path)
        assert DuplicatesValidator().model_is_valid(model, True)
        assert RefsValidator().model_is_valid(model, True)
        again = model.oscal_serialize_json().replace("+00:00", "Z")
        assert json.loads(again) == json.loads(data)

    @pytest.mark.parametrize("gone", ["uuid", "metadata", "import-ap", "results"])
    def test_compliance_trestle_would_refuse_another(self, gone: str, tmp_path: Path) -> None:
        value = document(claimed())
        del value[gone]
        data = json.dumps({"assessment-results": value}).encode()
        with pytest.raises(Exception, match=f"(?i){gone}"):
            read_by_trestle(data, tmp_path)

    def test_states_follow_from_the_statuses(self) -> None:
        value = claimed(log=Status.FAIL, selection=Status.NOT_RUN, coalition=Status.EXCEEDED)
        states = self.states(document(value))
        assert states["claim.integrity"] == ("not-satisfied", "fail")
        assert states["claim.privacy"] == ("not-satisfied", "fail")
        assert states["check.log"] == ("not-satisfied", "fail")
        assert states["check.coalition"] == ("not-satisfied", "fail")
        assert states["check.selection"] == ("not-satisfied", "other")
        assert states["check.policy"] == ("satisfied", "pass")

    def test_privacy_that_is_not_claimed_is_not_satisfied(self) -> None:
        states = self.states(document(unnoised()))
        assert states["claim.integrity"] == ("satisfied", "pass")
        assert states["claim.privacy"] == ("not-satisfied", "other")
        assert "check.epsilon" not in states

    def test_nothing_of_a_worthless_window_is_satisfied(self) -> None:
        value = document(OUTCOMES["worthless"])
        assert {state for state, _ in self.states(value).values()} == {"not-satisfied"}
        result = value["results"][0]
        assert result["risks"][0]["title"] == "Worthless"
        assert result["description"].startswith("WORTHLESS")

    def test_every_check_is_observed_and_related_to_its_findings(self) -> None:
        value = document(unnoised())["results"][0]
        assert len(value["observations"]) == len(CHECKS)
        related = {
            each["target"]["target-id"]: len(each["related-observations"])
            for each in value["findings"]
        }
        assert related["claim.integrity"] + related["claim.privacy"] == len(CHECKS)
        assert related["check.log"] == 1

    def test_all_that_is_not_covered_is_a_risk_and_all_assumptions_are_said(self) -> None:
        value = outcome(not_covered=("First.", "Second."), assumptions=("Third.",))
        result = document(value)["results"][0]
        assert [risk["statement"] for risk in result["risks"]] == ["First.", "Second."]
        assert result["remarks"].endswith("\n\nThird.")

    def test_a_reason_cannot_make_up_a_heading(self) -> None:
        check = CheckResult(1, "policy", "t", Status.FAIL, "no\n\n# PASS [x](y) <b>", ("*a*",))
        value = outcome(checks=(check,))
        found = document(value)["results"][0]["observations"][0]["description"]
        assert found == "no \\# PASS \\[x\\](y) \\<b\\>\n\n\\*a\\*"

    def test_it_names_the_verdict_and_every_item(self) -> None:
        verdict = signed(claimed())
        found = json.loads(assessment_results(verdict))["assessment-results"]
        rlinks = {
            link["href"]: link["hashes"][0]["value"]
            for one in found["back-matter"]["resources"]
            for link in one["rlinks"]
        }
        assert rlinks == {**DIGESTS, "verdict.json": verdict.digest}
        assert found["import-ap"]["href"] == f"#{uuid_of(verdict.digest, 'plan')}"

    def test_identifiers_are_of_this_verdict_alone(self) -> None:
        first, again = assessment_results(signed(claimed())), assessment_results(signed(claimed()))
        assert first == again
        assert document(claimed())["uuid"] != document(claimed(), time=1)["uuid"]
        assert str(uuid_of("ab", "result")) == "ebb9773b-5335-55c8-8ba1-a3dfc484e1be"

    def test_a_refused_window_has_not_begun(self) -> None:
        result = document(outcome("REFUSED"), time=1_600_000_000_000)["results"][0]
        assert result["start"] == result["end"] == "2020-09-13T12:26:40Z"
        assert document(claimed())["results"][0]["start"] == "2023-11-14T22:13:20Z"

    @pytest.mark.parametrize("ids", [(), ("Ä",), ("",), ("a\n",)])
    def test_checks_without_names_are_refused(self, ids: tuple[str, ...]) -> None:
        checks = tuple(CheckResult(1, name, "t", Status.PASS, "r") for name in ids)
        with pytest.raises(MalformedError, match="cannot name"):
            assessment_results(signed(outcome(checks=checks)))

    def test_a_time_that_has_no_timestamp_is_refused(self) -> None:
        with pytest.raises(MalformedError, match="in no year"):
            assessment_results(signed(claimed(), time=2**52))

    @staticmethod
    def states(value: dict[str, Any]) -> dict[str, tuple[str, str]]:
        return {
            each["target"]["target-id"]: (
                each["target"]["status"]["state"],
                each["target"]["status"]["reason"],
            )
            for each in value["results"][0]["findings"]
        }


class TestLines:
    def test_every_line_stands_alone(self) -> None:
        verdict = signed(claimed(coalition=Status.EXCEEDED))
        lines = [finding.encode() for finding in AuditFinding.of(verdict)]
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
        for line in map(json.loads, lines):
            assert line["format"] == "ragaudit/v1/audit-finding"
            assert (line["provider"], line["window"]) == ("rag.example", "w1")
            assert (line["result"], line["worthless"]) == ("EXCEEDED", False)
            assert (line["verdict"], line["time"]) == (verdict.digest, 1_700_000_000_000)

    def test_ids_name_the_same_in_every_window(self) -> None:
        value = outcome(not_covered=("a",), assumptions=("b",))
        ids = [finding.id for finding in AuditFinding.of(signed(value))]
        assert ids == [
            "result",
            "claim/integrity",
            "claim/privacy",
            *(f"check/{check.id}" for check in CHECKS),
            "not-covered/ca978112ca1bbdca",
            "assumption/3e23e8160039594a",
        ]

    def test_both_claims_have_lines(self) -> None:
        found = {finding.id: finding for finding in AuditFinding.of(signed(unnoised()))}
        assert found["claim/integrity"].status == "PASS"
        assert found["claim/privacy"].status == "NOT CLAIMED"
        assert found["claim/privacy"].text.startswith("No epsilon is claimed")
        assert found["check/epsilon"].status == "NOT APPLICABLE"

    def test_a_worthless_window_is_warned_of(self) -> None:
        first, *others = AuditFinding.of(signed(OUTCOMES["worthless"]))
        assert first.text == WORTHLESS
        assert all(finding.to_json()["worthless"] for finding in others)

    @pytest.mark.parametrize("name", OUTCOMES)
    def test_lines_are_read_as_they_were_written(self, name: str) -> None:
        for finding in AuditFinding.of(signed(OUTCOMES[name])):
            assert AuditFinding.parse(finding.encode()) == finding

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("check/log", {"id": "claim/log"}),
            ("check/log", {"id": "check"}),
            ("check/log", {"id": "other/log"}),
            ("check/log", {"number": None}),
            ("check/log", {"number": True}),
            ("check/log", {"status": None}),
            ("check/log", {"evidence": [1]}),
            ("check/log", {"result": "GOOD"}),
            ("check/log", {"time": True}),
            ("check/log", {"verdict": "ab"}),
            ("check/log", {"format": "ragaudit/v2/audit-finding"}),
            ("check/log", {"more": 1}),
            ("result", {"status": "FAIL"}),
            ("result", {"id": "result/x"}),
            ("claim/privacy", {"number": 1}),
            ("not-covered/", {"text": "Nothing."}),
            ("not-covered/", {"status": "PASS"}),
        ],
    )
    def test_another_line_is_refused(self, kind: str, change: dict[str, object]) -> None:
        lines = [finding.to_json() for finding in AuditFinding.of(signed(claimed()))]
        line = next(line for line in lines if line["id"].startswith(kind))
        with pytest.raises(MalformedError):
            AuditFinding.parse(canonical_json.dumps({**line, **change}) + b"\n")

    def test_a_line_that_was_cut_off_is_refused(self) -> None:
        line = AuditFinding.of(signed(claimed()))[0].encode()
        with pytest.raises(MalformedError, match="does not end"):
            AuditFinding.parse(line[:-1])
