"""The formula language: Python's expressions, none of Python's powers, carried out on whole columns.

A formula is read by a lexer, Python's parser and a whitelist (``parser.py``), typed and compiled against the fields
of a template (``build.py``, ``operators.py``, ``functions/``), and carried out for a block of rows at once by numpy
and Arrow (``nodes.py``, ``arithmetic.py``, ``textual.py``). It decides a cell like any type does: nothing binary is
reckoned with, and no row depends on another. ``docs/reference/formulas.md`` is its description.
"""
