"""Values of a column of a workspace file: drawn, one after the other, or looked up by a key of the row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine import text
from webapp.engine.fields.outside import Fetched, Outside
from webapp.engine.outside import Answer, Question

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class DatasetColumn(Outside):
    """A value out of a column of a file."""

    name = "dataset_column"
    label = "Column of a file"
    category = "choice"
    description = "A value of a column of a workspace file: drawn, row by row, or looked up by another field."
    aliases = ("dataset", "csv column", "column from file", "lookup in file", "file value")
    example = "example"

    class Options(Fetched):
        file: str = Field(
            min_length=1,
            max_length=limits.MAX_FILE_NAME_CHARS,
            description="A workspace file: CSV, JSON, NDJSON, XLSX or Parquet.",
        )
        column: str = Field(
            min_length=1, max_length=limits.MAX_NAME_CHARS, description="The column whose values are taken."
        )
        mode: Literal["random", "sequential", "lookup"] = Field(
            "random",
            description="random: any row of the file; sequential: row by row, from the first again after the last; "
            "lookup: the first row whose key_column has the value of the field key.",
        )
        key: str | None = Field(
            None, min_length=1, max_length=limits.MAX_NAME_CHARS, description="Of lookup: a field of the row."
        )
        key_column: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description="Of lookup: the column of the file that is compared with it; the one of the field's name, if "
            "not said.",
        )
        sheet: str | None = Field(
            None, min_length=1, max_length=limits.MAX_NAME_CHARS, description="Of a workbook; else the first."
        )

        @model_validator(mode="after")
        def _key_of_lookup(self) -> DatasetColumn.Options:
            if (self.mode == "lookup") != (self.key is not None):
                raise ValueError("Name key where mode is lookup, and only there")
            if self.key_column is not None and self.mode != "lookup":
                raise ValueError("key_column belongs to the mode lookup")
            return self

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.key is not None and compiler.require(field, "options.key", options.key) is not None:
            self.needs = (options.key,)
        said = (("file", options.file), ("sheet", options.sheet))
        answer = compiler.ask(field, Question("", "file", said))
        self._rows, self._keys, self._first = 0, pa.array([], pa.string()), np.zeros(0, np.int64)
        self._known = answer is not None
        if answer is not None and answer.taken is not None:
            self._read(answer, compiler)
        if field.common.unique and self._known and self.space() is not None:
            self._refuse_doubles(compiler)

    def _read(self, answer: Answer, compiler: Compiler) -> None:
        options, table = self.options, answer.taken.real.table  # type: ignore[union-attr]
        self._rows = table.num_rows
        self.use(replace(answer, table=table), options.column, compiler)
        if not self._rows:
            self.empty(compiler, f'There are no rows in "{options.file}".')
        if options.mode != "lookup":
            return
        name = options.key_column or options.key
        if name not in table.column_names:
            told = f'The file has no column "{name}"; it has {", ".join(table.column_names[:20])}.'
            compiler.fault(
                self.field, "options.key_column", "unknown_column", told, "Name the one to compare with."
            )
            return
        found = text.to_text(text.decode(table.column(name).combine_chunks()))
        encoded = found.dictionary_encode()
        numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        seen, first = np.unique(numbers, return_index=True)
        kept = seen >= 0
        self._keys = encoded.dictionary.take(pa.array(seen[kept]))
        self._first = first[kept].astype(np.int64)

    def fill(self, cells: Cells) -> pa.Array:
        if not self._known:
            return self.stood_in(cells.n)
        if not self._rows:
            return self.picked(np.zeros(cells.n, np.int64), np.zeros(cells.n, np.bool_))
        match self.options.mode:
            case "random":
                return self.picked(cells.below(self._rows).view(np.int64), None)
            case "sequential":
                return self.picked((cells.rows % np.uint64(self._rows)).view(np.int64), None)
        wanted = text.to_text(text.decode(cells.column(self.needs[0])))
        place = pc.index_in(wanted, value_set=self._keys)
        there = place.is_valid().to_numpy(zero_copy_only=False)
        number = pc.fill_null(place, 0).to_numpy(zero_copy_only=False)
        index = self._first[number] if self._first.size else np.zeros(cells.n, np.int64)
        return self.picked(np.where(there, index, 0), None if there.all() else there)

    def fill_unique(self, cells: Cells) -> pa.Array:
        if not self._known or self.options.mode == "sequential":
            return self.fill(cells)
        return self.picked(cells.permuted(self._rows).view(np.int64), None)

    def space(self) -> int | None:
        if self.redacted or self.options.mode == "lookup":
            return None
        return self._rows if self._known else limits.MAX_PARENTS

    def _refuse_doubles(self, compiler: Compiler) -> None:
        if len(self._pool.unique()) < len(self._pool) or self._pool.null_count:
            told = f'"{self.options.file}" has values twice in "{self.options.column}", or blanks.'
            compiler.fault(
                self.field, "unique", "not_unique", told, "Take unique away, or take another column."
            )

    def unique_hint(self) -> str:
        return "Values that are looked up may repeat, and redacted ones are all alike: take unique away."
