"""Schema inference: the type of each column of an import, from its name, declaration and values."""
