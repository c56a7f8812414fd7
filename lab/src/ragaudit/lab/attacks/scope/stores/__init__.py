"""One adapter for each interface: its requests, and nothing of what they may mean."""
