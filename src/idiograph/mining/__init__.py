"""A corpus to triplets that topic cannot solve, checked for leaks; anchors and passages to rank."""
