"""Statements, parameters, noise specification: what ragaudit proves."""
