"""Texts of known authors: read from many formats, cleaned, stored, described."""
