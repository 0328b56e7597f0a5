"""Servers on this machine that behave like HAL and GROBID, faults included."""
