"""Canonical bytes, domain tags, digests, Ed25519 signing framing and error roots of ragaudit."""
