"""SQLAlchemy tables. No behaviour beyond invariants; services do the rest."""

from webapp.models.audit import AuditEntry, AuditHead, AuditPending, AuditSeal
from webapp.models.base import JSON_DOC, Base, UtcTime
from webapp.models.compat import CompatObject, KeyMapEntry
from webapp.models.connections import Connection, Fetched, MaskingKey, Secret
from webapp.models.datasets import Dataset, DatasetVersion
from webapp.models.endpoints import Endpoint
from webapp.models.exports import Export, ExportPart
from webapp.models.files import StorageHold, WorkspaceFile
from webapp.models.idempotency import IdempotencyRecord
from webapp.models.imports import TemplateImport
from webapp.models.keys import ApiKey
from webapp.models.notices import Delivery, LimitWarning, Mail, NoticeChoice, Noticed, Webhook
from webapp.models.people import BrowserSession, Invitation, SignInLink, User
from webapp.models.pushes import Push, PushLine, PushRange, PushRow
from webapp.models.scenarios import Run, RunChunk, Scenario, ScenarioVersion
from webapp.models.sign_in import Identity, RecoveryCode, SecondFactor
from webapp.models.templates import Template, TemplateVersion
from webapp.models.tenancy import ROLES, Membership, Project, Team, Workspace
from webapp.models.usage import UsageFold, UsageHour
from webapp.models.work import END_STATES, NEXT_STATES, STATES, Work

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
