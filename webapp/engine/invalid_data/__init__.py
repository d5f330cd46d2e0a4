"""Invalid data for negative tests, with an answer key: which cells are invalid, in which way, and their valid values.

Whether a cell is invalid, and its kind, depend only on seed, field and row, like any value. Other fields, formulas,
children and parents read the valid value; only the output has the invalid one. So each fault affects exactly one
cell, and the answer key can be generated for any rows at any time.

`settings.py` has the options of templates and fields. `injector.py` has the kinds that a field supports, their values
and their checks, and puts them into a block of rows. `answer_key.py` lists them.
"""
