"""SQLAlchemy tables. No behaviour beyond invariants; services do the rest."""

from webapp.access.models import (
    ROLES,
    ApiKey,
    BrowserSession,
    Identity,
    Invitation,
    Membership,
    Project,
    RecoveryCode,
    SecondFactor,
    SignInLink,
    Team,
    User,
    Workspace,
)
from webapp.audit.models import AuditEntry, AuditHead, AuditPending, AuditSeal
from webapp.builder.models import DraftRevision, TemplateDraft
from webapp.connections.models import Connection, Endpoint, Fetched, MaskingKey, Secret
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.exports.models import Export, ExportPart
from webapp.files.models import CompatObject, KeyMapEntry, StorageHold, WorkspaceFile
from webapp.imports.models import ImportJob, TemplateImport
from webapp.mail.models import Mail, NoticeChoice
from webapp.metering.models import UsageFold, UsageHour
from webapp.model_base import JSON_DOC, Base, UtcTime
from webapp.notifications.models import Delivery, LimitWarning, Webhook
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.row_templates.models import Template, TemplateVersion
from webapp.scenarios.models import Run, RunChunk, Scenario, ScenarioVersion
from webapp.schedules.models import Schedule
from webapp.web.models import IdempotencyRecord
from webapp.work.models import END_STATES, NEXT_STATES, STATES, Notifiable, Work

__all__ = [
    "END_STATES",
    "JSON_DOC",
    "NEXT_STATES",
    "ROLES",
    "STATES",
    "ApiKey",
    "AuditEntry",
    "AuditHead",
    "AuditPending",
    "AuditSeal",
    "Base",
    "BrowserSession",
    "CompatObject",
    "Connection",
    "Dataset",
    "DatasetVersion",
    "Delivery",
    "DraftRevision",
    "Endpoint",
    "Export",
    "ExportPart",
    "Fetched",
    "IdempotencyRecord",
    "Identity",
    "ImportJob",
    "Invitation",
    "KeyMapEntry",
    "LimitWarning",
    "Mail",
    "MaskingKey",
    "Membership",
    "NoticeChoice",
    "Notifiable",
    "Project",
    "Push",
    "PushLine",
    "PushRange",
    "PushRow",
    "RecoveryCode",
    "Run",
    "RunChunk",
    "Scenario",
    "ScenarioVersion",
    "Schedule",
    "SecondFactor",
    "Secret",
    "SignInLink",
    "StorageHold",
    "Team",
    "Template",
    "TemplateDraft",
    "TemplateImport",
    "TemplateVersion",
    "UsageFold",
    "UsageHour",
    "User",
    "UtcTime",
    "Webhook",
    "Work",
    "Workspace",
    "WorkspaceFile",
]
