"""Figures from numbers; the only home of matplotlib."""
