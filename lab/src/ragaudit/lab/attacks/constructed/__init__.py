"""Cheating windows made without services: evidence that no service would get to produce."""
