"""Objects of the hosted service's clients: sets, custom data types, masking policies, plans, folders, key maps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
TIME = sa.DateTime(timezone=True)


def _place(table: str) -> list[sa.schema.SchemaItem]:
    """The columns of a table whose rows belong to a project."""
    items: list[sa.schema.SchemaItem] = []
    for column, target in (("project_id", "projects"), ("team_id", "teams"), ("workspace_id", "workspaces")):
        items += [
            sa.Column(column, ID, nullable=False),
            sa.ForeignKeyConstraint(
                [column], [f"{target}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE"
            ),
        ]
    return items


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "compat_objects",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("rows", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_by", ID, nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *_place("compat_objects"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_compat_objects_created_by"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compat_objects")),
    )
    op.create_table(
        "key_map_entries",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("map_name", sa.String(length=100), nullable=False),
        sa.Column("object_name", sa.String(length=100), nullable=False),
        sa.Column("old_key", sa.String(length=300), nullable=False),
        sa.Column("new_key", sa.String(length=300), nullable=False),
        sa.Column("run_id", sa.String(length=100), nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        *_place("key_map_entries"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_map_entries")),
        sa.UniqueConstraint(
            "project_id", "map_name", "object_name", "old_key",
            name=op.f("uq_key_map_entries_project_id_map_name_object_name_old_key"),
        ),
    )  # fmt: skip
    for table in ("compat_objects", "key_map_entries"):
        for column in ("project_id", "workspace_id"):
            op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    """Back from this revision."""
    op.drop_table("key_map_entries")
    op.drop_table("compat_objects")
