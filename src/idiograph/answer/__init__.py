"""Who wrote this? Attribution, verification and what in the text speaks for it."""
