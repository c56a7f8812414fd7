"""Ask an audited RAG service and check every receipt."""
