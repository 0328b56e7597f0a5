"""The HAL archive: its records and their PDFs."""
