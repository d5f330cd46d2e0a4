"""The command line: `./rowsmith`. One module a command; `__main__` picks it."""
