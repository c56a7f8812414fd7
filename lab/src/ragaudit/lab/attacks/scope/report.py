"""What a run found: JSON for machines, Markdown or HTML for people, without any key."""

import html
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from ragaudit.encoding.commands import ExitCode
from ragaudit.lab.attacks.scope.exchange import Answer, Request, Secrets, mentions
from ragaudit.lab.attacks.scope.judging import FORMAT, SEVERITY, Kind
from ragaudit.lab.attacks.scope.probes import Tested

Result = Literal["LEAK", "INCOMPLETE", "CLEAN"]
SHOWN: Final = 2000
"""Characters of an answer in a report, around what was found."""
REFERENCES: Final = (
    "OWASP AI Exchange, issue 211 (retrieval scope at the vector store): may be relevant",
    "OWASP AISVS, chapter C8 (memory, embeddings and vector databases): may be relevant",
)
LIMIT: Final = (
    "Nothing was found is not nothing is there: these probes, with these keys, at this time."
)
NO_WRITES: Final = (
    "No probe wrote into what belongs to another tenant (--writes), so that writes are not tested."
)
_SAYS: Final[Mapping[Kind, str]] = {
    "integrity": "a way to write into another tenant's documents",
    "content": "the text of another tenant's document",
    "vector": "the vector of another tenant's document",
    "metadata": "the metadata of another tenant's document",
    "id": "the id of another tenant's document",
    "existence": "whether another tenant has a document",
    "collection": "the name of another tenant's collection",
    "timing": "by its time, whether another tenant has a document",
}


@dataclass(frozen=True)
class Finding:
    """A leak that can be reproduced.

    Attributes:
        kind: of what leaks.
        evidence: the marker in the answer, or where answers differ.
        times: how many of the probe's answers show it.
        p_value: of a finding by a test; None where a marker proves it.
    """

    probe: str
    family: str
    idea: str
    kind: Kind
    attacker: str
    victim: str
    evidence: str
    request: Request
    answer: Answer
    times: int = 1
    p_value: float | None = None

    @property
    def severity(self) -> str:
        """How bad it is: critical, high, medium or low."""
        return SEVERITY[self.kind]

    @property
    def title(self) -> str:
        """What it shows, in one sentence."""
        return f"{self.attacker} learns {_SAYS[self.kind]} ({self.victim}'s)"

    @property
    def _shown(self) -> str:
        """The answer's text, after its headers where they are what tells."""
        told = mentions(self.answer.headers.casefold(), self.evidence)
        return f"{self.answer.headers}\n\n{self.answer.text}" if told else self.answer.text

    def to_json(self, url: str, header: str, prefix: str, secrets: Secrets) -> dict[str, Any]:
        """Return the members of the report.

        Args:
            url: of the service, "" for connection strings.
            header: that carries the key.
            prefix: of the key there.
            secrets: to leave out.
        """
        clean = secrets.redacted
        return {
            "probe": self.probe,
            "family": self.family,
            "kind": self.kind,
            "severity": self.severity,
            "title": self.title,
            "idea": self.idea,
            "attacker": self.attacker,
            "victim": self.victim,
            "evidence": clean(self.evidence),
            "times": self.times,
            "p_value": self.p_value,
            "request": {
                "method": self.request.method,
                "path": clean(self.request.path),
                "headers": {name: clean(value) for name, value in self.request.headers.items()},
                "body": clean(self.request.body),
            },
            "answer": {
                "status": self.answer.status,
                "text": _around(clean(self._shown), self.evidence),
            },
            "reproduce": clean(_command(self.request, url, header, prefix)),
        }


@dataclass(frozen=True)
class Tried:
    """A probe or an oracle that was run for a pair of tenants.

    Attributes:
        statuses: how often the attacker got which.
        unjudged: why it says nothing, "" if it does.
        skip: whether that is as it must be, and makes the run no less complete.
    """

    probe: str
    family: str
    idea: str
    attacker: str
    victim: str
    statuses: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    unjudged: str = ""
    skip: bool = False

    @classmethod
    def of(
        cls, attacker: str, victim: str, probe: Tested, statuses: Counter[str],
        findings: Sequence[Finding], unjudged: Iterable[str] = (),
    ) -> Self:  # fmt: skip
        """Return what came of it; nothing found among answers of which some say nothing is no
        result."""
        why = "" if findings else ", ".join(sorted({one for one in unjudged if one}))
        return cls(
            probe.name, probe.family, probe.idea, attacker, victim, dict(statuses),
            tuple(findings), why,
        )  # fmt: skip

    @classmethod
    def skipped(cls, attacker: str, victim: str, probe: Tested, why: str) -> Self:
        """Return what cannot be tried with the keys that there are."""
        return cls(probe.name, probe.family, probe.idea, attacker, victim, {}, (), why, skip=True)

    @property
    def result(self) -> str:
        """FOUND, NOTHING, NOT JUDGED or SKIPPED."""
        if self.findings:
            return "FOUND"
        if self.unjudged:
            return "SKIPPED" if self.skip else "NOT JUDGED"
        return "NOTHING"


@dataclass(frozen=True)
class Report:
    """A run.

    Attributes:
        started: UTC, in seconds since 1970.
        error: the stated error of all tests together.
        controlled: tenants whose own key found their canaries.
    """

    store: str
    url: str
    seed: int
    error: float
    started: int
    requests: int
    tenants: tuple[str, ...]
    controlled: tuple[str, ...]
    tried: tuple[Tried, ...]
    header: str = ""
    prefix: str = ""
    secrets: Secrets = field(default_factory=lambda: Secrets({}), repr=False)

    @property
    def findings(self) -> list[Finding]:
        """All of them, the worst first."""
        found = [finding for one in self.tried for finding in one.findings]
        order = list(dict.fromkeys(SEVERITY.values()))
        return sorted(found, key=lambda one: order.index(one.severity))

    @property
    def result(self) -> Result:
        """LEAK, INCOMPLETE (nothing found, not everything judged) or CLEAN."""
        if self.findings:
            return "LEAK"
        return "INCOMPLETE" if any(one.result == "NOT JUDGED" for one in self.tried) else "CLEAN"

    @property
    def limits(self) -> list[str]:
        """What the result does not say."""
        wrote = any(one.family == "write" and one.result != "SKIPPED" for one in self.tried)
        return [LIMIT] if wrote else [LIMIT, NO_WRITES]

    @property
    def exit_code(self) -> ExitCode:
        """That of the result."""
        return {
            "LEAK": ExitCode.FALSE,
            "INCOMPLETE": ExitCode.INCOMPLETE,
            "CLEAN": ExitCode.DONE,
        }[self.result]

    def to_json(self) -> dict[str, Any]:
        """Return the report; `schema.SCHEMA` describes it."""
        return {
            "format": FORMAT,
            "result": self.result,
            "store": self.store,
            "url": self.secrets.redacted(self.url),
            "seed": self.seed,
            "error": self.error,
            "started": self.started,
            "requests": self.requests,
            "tenants": list(self.tenants),
            "controlled": list(self.controlled),
            "findings": [
                one.to_json(self.url, self.header, self.prefix, self.secrets)
                for one in self.findings
            ],
            "tried": [
                {
                    "probe": one.probe,
                    "family": one.family,
                    "idea": one.idea,
                    "attacker": one.attacker,
                    "victim": one.victim,
                    "result": one.result,
                    "why": one.unjudged,
                    "statuses": dict(sorted(one.statuses.items())),
                }
                for one in self.tried
            ],
            "limits": self.limits,
            "references": list(REFERENCES),
        }

    def to_markdown(self) -> str:
        """Return a page for people."""
        document = self.to_json()
        lines = [
            f"# Scope test: {self.result}", "",
            f"{document['store']} {document['url']}".strip(),
            f"{self.requests} requests, seed {self.seed}; tenants {', '.join(self.tenants)}; "
            f"own canaries seen by {', '.join(self.controlled) or 'nobody'}.", "",
            f"Findings by a marker cannot be chance. Those by a test have all together a "
            f"probability of at most {self.error:g} to accuse a store that does not tell.", "",
        ]  # fmt: skip
        for number, one in enumerate(document["findings"], start=1):
            p_value = "" if one["p_value"] is None else f" (p = {one['p_value']:.2g})"
            lines += [
                f"## {number}. {one['severity']}: {one['title']}", "",
                f"`{one['probe']}` ({one['family']}): {one['idea']} Seen {one['times']} times"
                f"{p_value}.", "", f"Evidence: {_code(one['evidence'])}", "", "To reproduce:", "",
                *_fenced(one["reproduce"]), "", f"Answer {one['answer']['status']}:", "",
                *_fenced(one["answer"]["text"]), "",
            ]  # fmt: skip
        lines += ["## What was tried", "", "| probe | by | of | result | answers |",
                  "|---|---|---|---|---|"]  # fmt: skip
        for row in document["tried"]:
            statuses = ", ".join(f"{name}: {count}" for name, count in row["statuses"].items())
            result = f"{row['result']} {row['why']}".strip()
            cells = (row["probe"], row["attacker"], row["victim"], result, statuses)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines += ["", *(f"- {line}" for line in (*self.limits, *REFERENCES)), ""]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the same page in HTML, without scripts, styles or addresses of others."""
        document, text = self.to_json(), html.escape
        parts = [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            f"<title>Scope test: {self.result}</title><h1>Scope test: {self.result}</h1>",
            f"<p>{text(document['store'])} {text(document['url'])}; {self.requests} requests, "
            f"seed {self.seed}; tenants {text(', '.join(self.tenants))}; own canaries seen by "
            f"{text(', '.join(self.controlled) or 'nobody')}.</p>",
            "<p>Findings by a marker cannot be chance. Those by a test have all together a "
            f"probability of at most {self.error:g} to accuse a store that does not tell.</p>",
        ]
        for one in document["findings"]:
            p_value = "" if one["p_value"] is None else f" (p = {one['p_value']:.2g})"
            parts.append(
                f"<h2>{text(one['severity'])}: {text(one['title'])}</h2>"
                f"<p><code>{text(one['probe'])}</code> ({text(one['family'])}): "
                f"{text(one['idea'])} Seen {one['times']} times{p_value}.</p>"
                f"<p>Evidence: <code>{text(one['evidence'])}</code></p><p>To reproduce:</p>"
                f"<pre>{text(one['reproduce'])}</pre><p>Answer {text(one['answer']['status'])}:</p>"
                f"<pre>{text(one['answer']['text'])}</pre>"
            )
        parts.append("<h2>What was tried</h2><table border=1><tr><th>probe<th>by<th>of<th>result"
                     "<th>answers")  # fmt: skip
        for row in document["tried"]:
            statuses = ", ".join(f"{name}: {count}" for name, count in row["statuses"].items())
            cells = (row["probe"], row["attacker"], row["victim"],
                     f"{row['result']} {row['why']}", statuses)  # fmt: skip
            parts.append("<tr>" + "".join(f"<td>{text(cell)}" for cell in cells))
        items = "".join(f"<li>{text(line)}" for line in (*self.limits, *REFERENCES))
        return "\n".join([*parts, f"</table><ul>{items}</ul></html>", ""])


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("\n", " ") + "`"


def _fenced(text: str) -> list[str]:
    # Longer than any run of backticks in a foreign text, which could end the block.
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, text, fence]


def _around(text: str, evidence: str) -> str:
    place = max(text.find(evidence) - SHOWN // 2, 0)
    shown = text[place : place + SHOWN]
    return f"{'...' if place else ''}{shown}{'...' if place + SHOWN < len(text) else ''}"


def _command(request: Request, url: str, header: str, prefix: str) -> str:
    """Return a command line whose key is a variable of the shell."""
    variable = "".join(one if one.isascii() and one.isalnum() else "_" for one in request.by)
    if request.method == "SQL":
        return f'psql "${variable.upper()}_DSN" -c {shlex.quote(request.path)}'
    words = ["curl", "--path-as-is", "-sS", "-X", request.method,
             shlex.quote(url.rstrip("/") + request.path)]  # fmt: skip
    words.append(f'-H "{header}: {prefix}${variable.upper()}_KEY"')
    if request.body:
        words.append("-H 'content-type: application/json'")
    words += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in request.headers.items()]
    if request.body:
        words.append(f"--data-binary {shlex.quote(request.body)}")
    return " ".join(words)
