"""Ways around a search in words, through OpenAI's SDK, LiteLLM and an MCP client."""

import asyncio
import os

import httpx2
import litellm
import mcp
from attempts import UNSERVED, WORDS, Attempts
from mcp.client.streamable_http import streamable_http_client
from ogx_client import OgxClient
from openai import OpenAI

url, key = os.environ["STORE_URL"], os.environ["STORE_KEY"]
tries = Attempts()
client = OpenAI(base_url=f"{url}/v1", api_key=key)
stores = client.vector_stores


def openai(store: str = "handbook", **more: object) -> object:
    return stores.search(store, query=WORDS, **more)


tries.refuse("openai rewrite_query", lambda: openai(rewrite_query=True))
tries.refuse("openai ranker", lambda: openai(ranking_options={"ranker": "default-2024-11-15"}))
tries.refuse("openai threshold", lambda: openai(ranking_options={"score_threshold": 1.5}))
tries.refuse("openai count", lambda: openai(max_num_results=21))
tries.refuse("openai column", lambda: openai(filters={"type": "eq", "key": "n", "value": 1}))
tries.refuse("openai type", lambda: openai(filters={"type": "eq", "key": "year", "value": "x"}))
tries.refuse("openai other tenant", lambda: openai("manual"))
tries.refuse("openai other case", lambda: openai("Handbook"))
tries.refuse("openai unknown", lambda: openai("nothing"))
tries.refuse("openai retrieve", lambda: stores.retrieve("manual"))
tries.refuse("openai list", stores.list)
tries.refuse("openai create", lambda: stores.create(name="other"))
tries.refuse("openai delete", lambda: stores.delete("handbook"))
tries.refuse("openai files", lambda: stores.files.list("handbook"))
tries.refuse(
    "openai content",
    lambda: stores.files.content(UNSERVED[0], vector_store_id="handbook"),
)
tries.refuse(
    "openai key", lambda: client.with_options(api_key="no").vector_stores.retrieve("handbook")
)


ogx_client = OgxClient(base_url=url, api_key=key)


def ogx(store: str = "handbook", **more: object) -> object:
    return ogx_client.vector_stores.search(store, query=WORDS, **more)


weights = {"ranker": "weighted", "weights": {"vector": 0.5, "keyword": 0.5}}
tries.refuse("ogx keyword search", lambda: ogx(search_mode="keyword"))
tries.refuse("ogx hybrid search", lambda: ogx(search_mode="hybrid"))
tries.refuse("ogx ranker", lambda: ogx(ranking_options={"ranker": "rrf"}))
tries.refuse("ogx weights", lambda: ogx(ranking_options=weights))
tries.refuse("ogx rewrite_query", lambda: ogx(rewrite_query=True))
tries.refuse("ogx threshold", lambda: ogx(ranking_options={"score_threshold": 1.5}))
tries.refuse("ogx column", lambda: ogx(filters={"type": "eq", "key": "n", "value": 1}))
tries.refuse("ogx other tenant", lambda: ogx("manual"))
tries.refuse("ogx list", ogx_client.vector_stores.list)
tries.refuse("ogx create", lambda: ogx_client.vector_stores.create(name="other"))
tries.refuse("ogx files", lambda: ogx_client.vector_stores.files.list("handbook"))
tries.refuse("ogx key", lambda: OgxClient(base_url=url, api_key="no").vector_stores.retrieve("x"))


def lite(store: str = "handbook", own: str = key, **more: object) -> object:
    return litellm.vector_stores.search(
        vector_store_id=store,
        query=WORDS,
        custom_llm_provider="pg_vector",
        api_base=url,
        api_key=own,
        **more,
    )


tries.refuse("litellm count", lambda: lite(max_num_results=21))
tries.refuse("litellm column", lambda: lite(filters={"type": "eq", "key": "n", "value": 1}))
tries.refuse("litellm rewrite_query", lambda: lite(rewrite_query=True))
tries.refuse("litellm other tenant", lambda: lite("manual"))
tries.refuse("litellm key", lambda: lite(own="no"))
tries.refuse(
    "litellm create",
    lambda: litellm.vector_stores.create(
        name="other", custom_llm_provider="pg_vector", api_base=url, api_key=key
    ),
)


class ToolError(Exception):
    """A tool's result says that it is an error, as the protocol has it."""


async def called(session: mcp.ClientSession, name: str, arguments: dict) -> None:
    """Call a tool."""
    found = await session.call_tool(name, arguments)
    if found.is_error:
        raise ToolError(found.content[0].text)


async def main() -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as streams,
        mcp.ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        for name, call in (
            ("mcp other tool", lambda: called(session, "delete", {"id": UNSERVED[0]})),
            ("mcp more arguments", lambda: called(session, "search", {"query": "x", "k": 3})),
            ("mcp no text", lambda: called(session, "search", {"query": ""})),
            ("mcp fetch", lambda: called(session, "fetch", {"id": UNSERVED[0]})),
            ("mcp fetch other tenant", lambda: called(session, "fetch", {"id": UNSERVED[1]})),
            ("mcp resources", session.list_resources),
            ("mcp prompts", session.list_prompts),
        ):
            try:
                await call()
                tries.served[name] = "served"
            except Exception as error:
                tries.note(name, error)


asyncio.run(main())
tries.print()
client.close()
