"""Views: one file per resource, two faces each. `reply` tells how a resource is added."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Flask
from werkzeug.routing import BaseConverter

from webapp.config import Settings
from webapp.views import (
    ai,
    answer_keys,
    api_keys,
    audit,
    builder,
    compat,
    connection_pages,
    connections,
    dataset_pages,
    datasets,
    docs,
    docs_api,
    documents,
    draft_sources,
    drafts,
    endpoint_pages,
    endpoints,
    export_parts,
    exports,
    exports_at_once,
    field_types,
    generate,
    health,
    hooks,
    icon,
    imports,
    masked,
    masking,
    measuring,
    members,
    metadata_documents,
    metrics,
    notices,
    pages,
    projects,
    push_pages,
    pushes,
    run_pages,
    runs,
    scenario_pages,
    scenarios,
    secrets,
    session,
    sessions,
    shell,
    sign_in,
    status,
    subsets,
    table_templates,
    templates,
    trash,
    two_factor,
    usage,
    webhooks,
    workspace,
    workspace_files,
    workspace_files_pages,
    workspace_files_parts,
)

BLUEPRINTS: Final[tuple[Blueprint, ...]] = (
    health.bp,
    metrics.bp,
    session.bp,
    sessions.bp,
    sign_in.bp,
    two_factor.bp,
    api_keys.bp,
    projects.bp,
    workspace.bp,
    members.bp,
    audit.bp,
    usage.bp,
    documents.bp,
    docs.bp,
    docs_api.bp,
    icon.bp,
    templates.bp,
    subsets.bp,
    table_templates.bp,
    imports.bp,
    masked.bp,
    ai.bp,
    generate.bp,
    answer_keys.bp,
    exports.bp,
    export_parts.bp,
    connections.bp,
    connection_pages.bp,
    metadata_documents.bp,
    secrets.bp,
    webhooks.bp,
    notices.bp,
    masking.bp,
    pushes.bp,
    push_pages.bp,
    endpoint_pages.bp,
    endpoints.bp,
    exports_at_once.bp,
    field_types.bp,
    pages.bp,
    trash.bp,
    status.bp,
    builder.bp,
    drafts.bp,
    draft_sources.bp,
    datasets.bp,
    dataset_pages.bp,
    scenarios.bp,
    workspace_files.bp,
    workspace_files_pages.bp,
    runs.bp,
    run_pages.bp,
    scenario_pages.bp,
    compat.bp,
)


class PartBeforeAt(BaseConverter):
    """A part of an address. It holds no `@`, which sets a version apart: `/templates/{id}@v3` is no template."""

    regex = "[^/@]+"


def init_app(app: Flask, settings: Settings) -> None:
    """Hang the pipeline and every resource onto the application."""
    app.request_class = workspace_files_parts.Request
    hooks.init_app(app, settings)
    measuring.init_app(app, settings)
    app.wsgi_app = compat.Door(app.wsgi_app)  # type: ignore[method-assign]
    shell.init_app(app)
    app.url_map.converters["default"] = PartBeforeAt
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
