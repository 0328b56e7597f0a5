"""Triplets to a trained encoder."""
