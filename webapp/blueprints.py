"""Register the views of all resources. `webapp.web.responses` describes how to add a resource."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Flask
from werkzeug.routing import BaseConverter

from webapp import quotas
from webapp.accounts import authentication
from webapp.accounts.views import api_keys, members, projects, session, sign_in, workspace
from webapp.activity import services as activity
from webapp.activity import views as activity_views
from webapp.audit import views as audit_views
from webapp.builder.views import builder, drafts, templates
from webapp.compat import views as compat_views
from webapp.config import Settings
from webapp.connections.views import connections, metadata_documents, pages, secrets
from webapp.dataset_editor import destinations as dataset_destinations
from webapp.dataset_editor import pages as dataset_pages
from webapp.datasets.views import datasets
from webapp.documentation import views as documentation_views
from webapp.documentation.api import views as api_views
from webapp.endpoints.views import endpoints
from webapp.endpoints.views import pages as endpoints_pages
from webapp.exports import views as exports_views
from webapp.files import multipart
from webapp.files import views as files_views
from webapp.fill import views as fill_views
from webapp.generation import views as generation_views
from webapp.home import views as home_views
from webapp.imports.views import ai, imports, tables
from webapp.notifications import views as notifications_views
from webapp.objects import views as objects_views
from webapp.operations import views as operations_views
from webapp.pushes.views import exports as pushes_exports
from webapp.pushes.views import pages as pushes_pages
from webapp.pushes.views import pushes
from webapp.real_data import views as real_data_views
from webapp.scenarios.views import run_pages, runs, scenarios
from webapp.schedules import views as schedules_views
from webapp.starters import views as starters_views
from webapp.usage import views as usage_views
from webapp.web import hooks, measurement, openapi, page_shell

BLUEPRINTS: Final[tuple[Blueprint, ...]] = (
    operations_views.health_bp,
    operations_views.metrics_bp,
    session.bp,
    session.sessions_bp,
    sign_in.bp,
    sign_in.two_factor_bp,
    api_keys.bp,
    projects.bp,
    workspace.bp,
    members.bp,
    audit_views.bp,
    usage_views.bp,
    openapi.bp,
    documentation_views.bp,
    api_views.bp,
    page_shell.bp,
    templates.bp,
    real_data_views.subsets_bp,
    tables.bp,
    fill_views.bp,
    imports.bp,
    real_data_views.masked_bp,
    ai.bp,
    generation_views.bp,
    exports_views.answer_keys_bp,
    exports_views.bp,
    exports_views.parts_bp,
    connections.bp,
    pages.bp,
    metadata_documents.bp,
    secrets.bp,
    notifications_views.bp,
    notifications_views.notices_bp,
    real_data_views.masking_bp,
    pushes.bp,
    pushes_pages.bp,
    endpoints_pages.bp,
    endpoints.bp,
    pushes_exports.bp,
    templates.field_types_bp,
    session.pages_bp,
    objects_views.bp,
    operations_views.status_bp,
    builder.bp,
    drafts.bp,
    drafts.sources_bp,
    datasets.bp,
    dataset_pages.bp,
    dataset_destinations.bp,
    scenarios.bp,
    files_views.bp,
    files_views.pages_bp,
    runs.bp,
    run_pages.bp,
    scenarios.pages_bp,
    compat_views.bp,
    activity_views.bp,
    schedules_views.bp,
    starters_views.bp,
    home_views.bp,
)


class UnversionedSegmentConverter(BaseConverter):
    """A part of a path without `@`, which separates a version: `/templates/{id}@v3` is not the path of a template."""

    regex = "[^/@]+"


def init_app(app: Flask, settings: Settings) -> None:
    """Add the request pipeline and every resource to the application."""
    app.request_class = multipart.Request
    hooks.init_app(app, settings, authenticate=authentication.authenticate)
    app.session_interface = authentication.CookieSessions()
    measurement.init_app(app, settings)
    app.wsgi_app = compat_views.CompatMiddleware(app.wsgi_app)  # type: ignore[method-assign]  # as Flask documents middleware
    page_shell.init_app(app, quotas.gauges, activity.count_running)
    datasets.init_app(app, dataset_pages.render_page)
    app.url_map.converters["default"] = UnversionedSegmentConverter
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
