"""The published study on any corpus: every table and figure, theirs beside ours, with intervals."""
