"""Fields that are unique together: no two rows have the same values in all of them.

Such fields are drawn together: a keyed permutation of the product of their spaces assigns a combination to each row,
and each field takes its part of it. Children with cardinality use a separate permutation for each parent, so that a
parent never has the same partner twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from webapp.engine import random
from webapp.engine.relations import EXISTING, RELATION
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import Block
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column, Layer
    from webapp.engine.spec import FieldSpec

_MAX_COMBINATIONS = 1 << 62


@dataclass(frozen=True, slots=True)
class UniqueTogether:
    """Fields (or groups of references) that are unique together."""

    name: str
    stable_id: str
    member_keys: tuple[tuple[str, ...], ...]
    """Each of them: ``(field,)``, or ``(group, RELATION)``."""
    sizes: tuple[int, ...]
    """Values that each of them has, as far as that is known before a request."""
    owner: str | None
    """The group of references by cardinality that is one of them; its parents are not chosen here."""
    max_children: int
    """Children of one parent at most; 0 without an owner."""
    path: str

    def key(self, seed: str, prefix: str) -> np.uint64:
        """The key of the combinations."""
        return random.key(seed, "together", prefix, self.stable_id)

    def bind_sizes(self, layer: Layer, state_of: Callable[[str], Any]) -> tuple[int, ...]:
        """The sizes once the request is known; ``state_of`` answers what a field's `prepare` did."""
        sizes = []
        for member_key, size in zip(self.member_keys, self.sizes, strict=True):
            found = (
                layer.columns[member_key[0]].type.distinct_count_for(state_of(member_key[0]))
                if len(member_key) == 1
                else size
            )
            sizes.append(size if found is None else found)
        # The largest are cut down until the product is one that can be permuted.
        while prod(sizes) > _MAX_COMBINATIONS:
            widest = sizes.index(max(sizes))
            rest = prod(sizes[:widest]) * prod(sizes[widest + 1 :])
            sizes[widest] = max(2, min(sizes[widest] // 2, _MAX_COMBINATIONS // max(1, rest)))
        return tuple(sizes)

    def fault(self, last: int, sizes: Sequence[int]) -> Fault | None:
        """Return the error of requesting ``last`` rows."""
        space, requested = prod(sizes), self.max_children if self.owner is not None else last
        if requested <= space:
            return None
        per_parent = " per parent" if self.owner is not None else ""
        text = (
            f'"{self.name}": {requested:,} combinations{per_parent} were requested and only {space:,} exist.'
        )
        return Fault(
            self.path, "not_enough_values", text, "Widen the fields' options, or request fewer rows."
        )

    def indices(self, block: Block, key: np.uint64, sizes: Sequence[int]) -> list[np.ndarray]:
        """Which value each row has of each of them: ``uint64[n]`` below its size."""
        space = prod(sizes)
        if self.owner is None:
            number = random.permutation(key, block.rows, space)
        else:
            parents = block.group(self.owner, RELATION)
            number = random.permutation_by(
                random.bits(key, parents.rows), parents.position.astype(np.uint64), space
            )
        found = []
        for size in reversed(sizes):
            number, index = np.divmod(number, np.uint64(size))
            found.append(index)
        return found[::-1]


def compile_unique_together(
    name: str, members: Sequence[FieldSpec], columns: Sequence[Column], compiler: Compiler
) -> UniqueTogether | None:
    """Return the fields that are unique together as ``name``. None if they are unique anyway, or after an error."""
    if len(members) < 2:
        text = f'Only one field has the label "{name}".'
        compiler.fault(
            members[0],
            "unique",
            "not_unique",
            text,
            "Use the same label for other fields, or set unique to true.",
        )
        return None
    related_plans = compiler.related_plans
    owner = None if compiler.is_nested else related_plans.parent_field(compiler.address)
    owning = None if owner is None else owner[0].group or RELATION
    owned = [s for s in members if s.type.group_kind == RELATION and (s.group or RELATION) == owning]
    if any(column.type.is_primary_key for column in columns):
        return None
    if owned and any(spec.type.name == "position_in_parent" for spec in members):
        return None
    sizes, member_keys = [], []
    for spec, column in zip(members, columns, strict=True):
        if spec in owned:
            continue
        size, member_key = _size_and_key(spec, column, compiler)
        if member_key not in member_keys:
            sizes.append(size)
            member_keys.append(member_key)
    ids = [spec.id for spec in members if spec.id]
    max_children = 0
    if owned:
        counts = related_plans.child_counts(compiler.address)
        max_children = counts.max if counts is not None else 0
    founder = min(ids) if ids else f"name:{name}"
    owner_group = owning if owned else None
    return UniqueTogether(
        name,
        founder,
        tuple(member_keys),
        tuple(sizes),
        owner_group,
        max_children,
        f"{members[0].path}.unique",
    )


def _size_and_key(spec: FieldSpec, column: Column, compiler: Compiler) -> tuple[int, tuple[str, ...]]:
    """The number of values of a member, and their use."""
    hint = "Numbers, dates, lists, regular expressions and references with a free choice can be unique in combination."
    if spec.common.percent_blank:
        text = "Fields that are unique in combination cannot have blanks."
        compiler.fault(spec, "percent_blank", "not_unique", text, "Remove percent_blank.")
    if spec.type.group_kind in (RELATION, EXISTING):
        kind = compiler.group_kind_of(spec)
        if not kind.is_uniform:
            text = (
                "A reference that does not choose its rows uniformly cannot be unique in combination "
                "with other fields."
            )
            compiler.fault(spec, "unique", "not_unique", text, "Set the distribution to uniform.")
        return max(1, kind.choice_count), (spec.group or spec.type.group_kind, spec.type.group_kind)
    size = column.type.distinct_count()
    if size is None or spec.type.group_kind is not None:
        text = f"{spec.type.label} with these options cannot be unique in combination with other fields."
        compiler.fault(spec, "unique", "not_unique", text, hint)
        return 1, (spec.name,)
    return size, (spec.name,)
