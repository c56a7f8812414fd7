"""Ask an audited RAG service, check every receipt, anchor queries by a nonce chain."""

from ragaudit.client.client import Client
from ragaudit.client.results import Receipt, SearchResult

__all__ = ["Client", "Receipt", "SearchResult"]
