"""Compiled proof core."""
