"""Bad data on purpose, with its answer key: which cells of a template are bad, in which way, and what they hide.

Whether a cell is bad, and of which kind, follows from seed, field and row alone, as a value does. The clean value stays
what it was: other fields, formulas, children and parents read that one; what is bad is only what leaves. So one bad
cell is one bad cell, and the answer key can be made for any rows at any time.

`invalid.py` is what a template says, `ability.py` which kinds a field can have, `values.py`, `shapes.py` and
`checks.py` what the bad values are, `spoiler.py` what is done to a block of rows, `answers.py` the key.
"""
