"""SQLAlchemy tables. No behaviour beyond invariants; services do the rest."""

from webapp.accounts.models import (
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
from webapp.compat.models import CompatObject, KeyMapEntry
from webapp.connections.models import Connection, Fetched, MaskingKey, Secret
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.endpoints.models import Endpoint
from webapp.files.models import StorageHold, WorkspaceFile
from webapp.generation.models import Export, ExportPart
from webapp.imports.models import TemplateImport
from webapp.model_base import JSON_DOC, Base, UtcTime
from webapp.notifications.models import Delivery, LimitWarning, Mail, NoticeChoice, Noticed, Webhook
from webapp.operations.models import END_STATES, NEXT_STATES, STATES, IdempotencyRecord, Work
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.row_templates.models import Template, TemplateVersion
from webapp.scenarios.models import Run, RunChunk, Scenario, ScenarioVersion
from webapp.usage.models import UsageFold, UsageHour

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
    "Endpoint",
    "Export",
    "ExportPart",
    "Fetched",
    "IdempotencyRecord",
    "Identity",
    "Invitation",
    "KeyMapEntry",
    "LimitWarning",
    "Mail",
    "MaskingKey",
    "Membership",
    "NoticeChoice",
    "Noticed",
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
    "SecondFactor",
    "Secret",
    "SignInLink",
    "StorageHold",
    "Team",
    "Template",
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
