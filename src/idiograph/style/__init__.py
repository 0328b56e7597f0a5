"""Texts to patches to scores, in numpy: the definition of the method."""
