"""The ragaudit command."""
