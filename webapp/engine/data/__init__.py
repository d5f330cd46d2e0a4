"""Vocabularies: lists and tables of real-world words, in one content-addressed file."""
