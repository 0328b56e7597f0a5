"""The only place that imports torch."""
