"""References that only the name of a column declares: `customer_id` in a table without a foreign key to `customers`.

Many databases have few foreign keys or none. A column counts as a reference if its name is that of another table with
`id`, and that table has a key of one column of the same type, or if it is called as the key of a single table, such as
`parameter_id` for `report_parameters (parameter_id)`. No such reference closes a circle of tables, because
nothing but a name says that it is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from webapp.connectors.schema import Column, Entity, Relation
from webapp.imports.inference.names import TABLE_NAME_NOISE, singular, split_words

_KEY_TYPES: Final = frozenset({"integer", "uuid"})
_KEY_NAMES: Final = frozenset({"id", "uuid", "guid"})
_DEFAULT_BITS: Final = 32

Words = tuple[str, ...]


def named_references(
    entities: Sequence[Entity], parents: Sequence[Entity] | None = None
) -> dict[str, tuple[Relation, ...]]:
    """Return the references of each table that its columns' names declare, in addition to its foreign keys.

    `parents` are the tables that can be referred to; default: `entities`.
    """
    parents = entities if parents is None else parents
    by_noun = _tables_by_noun(parents)
    # Keys by names that are more than `id`; None where several tables have the same.
    by_key: dict[str, Entity | None] = {}
    for item in parents:
        if item.kind == "table" and len(item.keys) == 1 and len(split_words(item.keys[0])) > 1:
            name = item.keys[0].casefold()
            by_key[name] = None if name in by_key else item
    dependencies = {
        item.name: {relation.entity for relation in item.relations if relation.entity != item.name}
        for item in (*parents, *entities)
    }
    references: dict[str, tuple[Relation, ...]] = {}
    for entity in entities:
        if entity.kind != "table":
            continue
        taken = {name for relation in entity.relations for name in relation.columns}
        column_names = [split_words(field.name) for field in entity.fields]
        relations = []
        for column in entity.fields:
            own = entity.keys == (column.name,)
            if own or column.name in taken or column.type not in _KEY_TYPES or column.generated:
                continue
            stem = split_words(column.name)[:-1]
            if [*stem, "type"] in column_names or [*stem, "class"] in column_names:
                continue  # `item_type` next to `item_id`: its table differs by row
            parent = _find_parent(column, entity, by_noun) or _find_by_key_name(column, entity, by_key)
            if parent is None or (
                parent is not entity and _depends_on(parent.name, entity.name, dependencies)
            ):
                continue
            if parent is not entity:
                dependencies[entity.name].add(parent.name)
            relations.append(Relation("", (column.name,), parent.name, parent.keys))
        if relations:
            references[entity.name] = tuple(relations)
    return references


def _tables_by_noun(parents: Sequence[Entity]) -> dict[Words, Entity | None]:
    """Return the tables by the words of their names, without what all names begin with; None where several have the
    same."""
    found: dict[Words, Entity | None] = {}
    first = {tuple(split_words(_table_name(parent))[:1]) for parent in parents}
    common = next(iter(first)) if len(first) == 1 and len(parents) > 1 else ()
    for entity in parents:
        words = _singular(tuple(split_words(_table_name(entity))))
        if entity.kind != "table" or not words:
            continue
        short = words[1:] if words[:1] == common or words[0] in TABLE_NAME_NOISE else words
        for item in {words, short} - {()}:
            found[item] = entity if found.get(item, entity) is entity else None
    return found


def _find_by_key_name(column: Column, entity: Entity, by_key: Mapping[str, Entity | None]) -> Entity | None:
    """Return the only other table whose key has the name of a column."""
    parent = by_key.get(column.name.casefold())
    key = parent.column(parent.keys[0]) if parent is not None and parent is not entity else None
    if key is None or key.type != column.type or not {*split_words(key.name)} & _KEY_NAMES:
        return None
    return parent if (column.bits or _DEFAULT_BITS) >= min(key.bits or _DEFAULT_BITS, _DEFAULT_BITS) else None


def _table_name(entity: Entity) -> str:
    return entity.parts[-1] if entity.parts else entity.name


def _singular(words: Words) -> Words:
    return (*words[:-1], singular(words[-1])) if words else ()


def _find_parent(column: Column, entity: Entity, by_noun: Mapping[Words, Entity | None]) -> Entity | None:
    """Return the table whose name a column has: `user_id`, `id_user`, `owner_user_id`. The parent of a row of the same
    table may be left out."""
    words = tuple(split_words(column.name))
    if len(words) > 1 and words[-1] in _KEY_NAMES:
        nouns = _singular(words[:-1])
    elif len(words) > 1 and words[0] in _KEY_NAMES:
        nouns = _singular(words[1:])
    else:
        return None
    if nouns == ("parent",):
        return entity if column.nullable and _can_reference(column, entity, ()) else None
    for start in range(len(nouns)):
        noun = nouns[start:]
        parent = by_noun.get(noun)
        if noun in by_noun and (parent is None or not _can_reference(column, parent, noun)):
            return None
        if parent is not None:
            return parent if parent is not entity or (column.nullable and start) else None
    return None


def _can_reference(column: Column, parent: Entity, noun: Words) -> bool:
    """Return whether a column can contain the key of a table, which is called `id`, or as the table."""
    key = parent.column(parent.keys[0]) if len(parent.keys) == 1 else None
    if key is None or key.type not in _KEY_TYPES or key.type != column.type:
        return False
    if (column.bits or _DEFAULT_BITS) < min(key.bits or _DEFAULT_BITS, _DEFAULT_BITS):
        return False
    words = {singular(item) for item in split_words(key.name)}
    own = {singular(item) for item in split_words(_table_name(parent))}
    return bool(words & _KEY_NAMES) and words <= _KEY_NAMES | own | set(noun)


def _depends_on(start: str, goal: str, dependencies: Mapping[str, set[str]]) -> bool:
    """Return whether a table refers to another one, directly or through others."""
    seen, pending = {start}, [start]
    while pending:
        name = pending.pop()
        if name == goal:
            return True
        pending += dependencies.get(name, set()) - seen
        seen |= dependencies.get(name, set())
    return False
