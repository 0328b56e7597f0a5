"""Rankers that people use today: anything with compare()."""
