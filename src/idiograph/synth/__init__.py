"""Corpora that need no download: the built-in anthology and simulated writers."""
