"""A library of passages, encoded and stored: build, search, filter."""
