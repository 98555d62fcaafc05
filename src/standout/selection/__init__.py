"""Choosing well: α, ω, shrinkage, and how many components are real. Works on moments and scores."""

__all__: list[str] = []
