"""Text in, triplets out."""
