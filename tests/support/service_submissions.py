"""What anybody hands in to the verifier of the test's provider, and what is kept of it."""

from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.verifier.service import submissions
from verifier_service_harness import ORIGIN, WINDOW

BASE = f"/v1/windows/{WINDOW}"


def post(story: Any, path: Any, document: Any) -> Any:
    data = document if isinstance(document, bytes) else canonical_json.dumps(document)
    return story.scenario.client.post(f"{BASE}/{path}", content=data)


def kept(story: Any, kind: Any) -> Any:
    with story.scenario.service.database.read() as connection:
        documents = list(submissions.documents(connection, ORIGIN, submissions.Kind(kind)))
    return [canonical_json.loads(each) for each in documents]


def give_entries(story: Any) -> Any:
    return story.send("POST", "entries", {"entries": story.documents()[:3]})
