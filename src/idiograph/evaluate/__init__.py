"""Measures, benchmarks, reports."""
