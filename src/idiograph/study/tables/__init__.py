"""The tables of the study, one module each."""
