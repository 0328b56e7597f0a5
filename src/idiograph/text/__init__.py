"""How any text is cut and counted: sentences, languages, words. Nothing about papers."""
