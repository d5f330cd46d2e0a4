"""Regular expressions as a source of texts: the parser, and the patterns compiled from its tree."""
