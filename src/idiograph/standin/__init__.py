"""Servers on this machine that behave like the ones out there, to try the line offline and to test it."""
