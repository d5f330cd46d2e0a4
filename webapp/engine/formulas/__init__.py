"""The formula language: a safe subset of Python's expressions, evaluated on whole columns.

A formula is read by a lexer, Python's parser and a whitelist (``parser.py``), typed and compiled against the fields of
a template (``compiler.py``, ``operators.py``, ``functions/``), and evaluated for whole blocks of rows with numpy and
Arrow (``nodes.py``, ``vectors.py``, ``text_kernels.py``). As for any field type, a cell does not depend on other rows,
and no binary fractions are used. ``docs/reference/formulas.md`` is its description.
"""
