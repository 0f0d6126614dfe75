"""Theorems about the iterates."""
