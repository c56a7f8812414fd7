"""Outcomes to report on, and a reader of the page."""

from dataclasses import replace
from html.parser import HTMLParser

from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.privacy.accounting.events import GAMMA
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.verifier.procedure import CHECKS, CheckResult, Outcome, Status, covered

KEY = PrivateKey.from_seed(b"k" * 32)
TABLE = epsilon_report("4", "replace", 1, 4, 2, "0.00001", GAMMA, 5, [3, 2, 2, 1], "20", "0.00001")
KEYS = {
    "provider": "aa" * 32,
    "log": "rag.example/ragaudit/w1+b3268e6c+AZF8w/cAdUtphcBYYuH6PONVS45QiHlj2WD6dU50U2m9",
    "cosigner": "verifier.example/cosigner+bcae4261+BAiFXFCBMVW+fgqK9ySdyMTXVYiE8zcsAiYlOEytWZ5I",
    "verifier": "bb" * 32,
    "verdict": "cc" * 32,
}
SCOPE = {
    "policy_digest": "ef" * 32,
    "start": 1_700_000_000,
    "end": 1_700_086_400,
    "sampling_instant": 1_700_090_000,
    "tenants": [{"id": "acme", "rows": 12345}, {"id": "umbrella", "rows": None}],
    "top_k_max": 7,
    "queries_per_account": 4,
    "slots": 64,
    "audit": {"mode": "B", "beta": "0.013", "eta": "0.00000077"},
    "keys": KEYS,
}


_GIVES = {
    "FAIL": {"selection": Status.FAIL},
    "EXCEEDED": {"coalition": Status.EXCEEDED},
    "CONDITIONAL": {"replay": Status.NOT_ESTABLISHED},
}


def outcome(result: str = "PASS", **changes: object) -> Outcome:
    """An outcome with a result, which follows from its checks, also where these are changed."""
    statuses = _GIVES.get(result, {})
    checks = tuple(
        CheckResult(c.number, c.id, c.title, statuses.get(c.id, Status.PASS), f"in order, {c.id}")
        for c in CHECKS
    )
    base = Outcome(
        window="w1",
        provider="rag.example",
        engine="core",
        result=result,
        worthless=False,
        terms="5a" * 32,
        checks=checks,
        epsilon=TABLE,
        sampling={
            "mode": "B",
            "beta": "0.1",
            "strata": [
                {
                    "id": "tenant:acme", "eta": "0.0009765625", "population": 1200, "bad": 120,
                    "sample": 300, "miss_probability": "0.000000953674",
                    "with_replacement": "0.999998000000",
                }
            ],
        },
        counts={"records": 1200, "accounts": 4, "anchored": 2, "plain": 2, "records_plain": 7},
        coalition={"claimed": 1, "estimated": 1, "max": 2},
        scope=SCOPE,
        not_covered=(*covered.NOT_COVERED, covered.UNSAMPLED, covered.PLAIN),
        assumptions=covered.ASSUMPTIONS,
    )  # fmt: skip
    made = replace(base, **changes)  # type: ignore[arg-type]
    return made if result == "REFUSED" else replace(made, result=made.claims.result)


DIGESTS = {"public/policy.json": "ab" * 32, "confidential/records.bin": "cd" * 32}


def signed(value: Outcome, **members: object) -> Verdict:
    """The verdict of an outcome, some members of its predicate replaced by anything."""
    predicate = {**value.predicate(time=1_700_000_000_000).to_json(), **members}
    envelope = verdicts.sign_statement(verdicts.statement(DIGESTS, predicate), KEY)
    return verdicts.Verdict.verify(envelope, KEY.public)


class Page(HTMLParser):
    """Texts, tags and attributes of a page; unbalanced tags fail."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        assert self.open == []
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data


def strata(*sizes: tuple[str, int, int]) -> dict[str, object]:
    found = [{"id": name, "population": n, "sample": s} for name, n, s in sizes]
    return {"mode": "A", "strata": found}
