"""Sign in and out, the user's own account and browser sessions, the current project, and the home page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from flask import Blueprint, Response, current_app, g, request, session, url_for
from flask import session as cookie
from pydantic import Field

from webapp import limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession, Project, User
from webapp.accounts import authentication
from webapp.accounts.services import oidc, people, sessions, sign_in, two_factor
from webapp.accounts.services.sign_in import SignInResult, Visitor
from webapp.accounts.views.workspace import LimitsOut
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.mail import services as mail
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input, ListQuery, Query, parse
from webapp.web.responses import ListOf, Output, Time, check_if_match, reply, see_other
from webapp.web.routing import route

bp = Blueprint("session", __name__)
STEP_FIELD: Final = "step"  # a second step that waits for its code, inside the signed cookie

Password = Annotated[str, Field(max_length=10_000)]
GivenPassword = Annotated[str, Field(min_length=1, max_length=10_000)]
NewPassword = Annotated[str, Field(min_length=1, max_length=limits.PASSWORD_MAX_CHARS)]


class SessionOut(Output):
    """A browser session.

    `how` is the sign-in method: password, link, invitation or oidc; `two_factor`: with a second factor. `current`: the
    session of this request.
    """

    id: str
    address: str
    user_agent: str
    how: str
    two_factor: bool
    created_at: Time
    last_seen_at: Time
    expires_at: Time
    current: bool


class SignInForm(Input):
    """E-mail address and password."""

    email: Annotated[str, Field(min_length=1, max_length=320, pattern=r"\S")]
    password: GivenPassword
    next: str = "/"


SIGN_IN: Final = FormSpec(
    SignInForm,
    {
        "next": Control(type="hidden"),
        "email": Control("E-mail address", type="email", autocomplete="username"),
        "password": Control("Password", type="password", autocomplete="current-password"),
    },
    focus="email",
)


class SignInQuery(Query):
    """The page to open after signing in, and the error of the last attempt through the provider."""

    next: str = "/"
    problem: str = ""


class InvitationForm(Input):
    """The new account's name, and its password (or that of the account the address has)."""

    name: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    password: GivenPassword


_LENGTH_HINT: Final = f"At least {limits.PASSWORD_MIN_CHARS} characters."
ACCEPT: Final = FormSpec(
    InvitationForm,
    {
        "name": Control("Name", autocomplete="name"),
        "password": Control("Password", hint=_LENGTH_HINT, type="password", autocomplete="new-password"),
    },
)
ACCEPT_WITH_ACCOUNT: Final = FormSpec(
    InvitationForm, {"password": Control("Password", type="password", autocomplete="current-password")}
)


class PasswordForm(Input):
    """The current password (empty if there is none) and the new one."""

    old_password: Password = ""
    new_password: NewPassword


PASSWORD: Final = FormSpec(
    PasswordForm,
    {
        "old_password": Control(
            "Current password", type="password", autocomplete="current-password", required=True
        ),
        "new_password": Control(
            "New password",
            hint=f"{_LENGTH_HINT} Changing it signs out your other browsers.",
            type="password",
            autocomplete="new-password",
        ),
    },
)


class WelcomeForm(Input):
    """The name and the first password of a user who came by a one-time link."""

    name: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
    new_password: NewPassword


WELCOME: Final = FormSpec(
    WelcomeForm,
    {
        "name": Control("Your name", autocomplete="name"),
        "new_password": Control("Password", hint=_LENGTH_HINT, type="password", autocomplete="new-password"),
    },
    focus="new_password",
)


class ProjectForm(Input):
    """The project to work in."""

    project_id: str
    next: str = "/"


class ProfileForm(Input):
    """Attributes that users can change in their profile."""

    name: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)]


PROFILE: Final = FormSpec(ProfileForm, {"name": Control("Name", autocomplete="name", required=False)})


class PreferencesForm(Input):
    """Display settings of this browser, and the page to return to."""

    theme: Literal["", "light", "dark"] | None = None
    keys: Literal["on", "off"] | None = None
    rail: Literal["on", "off"] | None = None
    back: str = "/"


PREFERENCES: Final = FormSpec(
    PreferencesForm,
    {
        "back": Control(type="hidden"),
        "theme": Control(
            "Theme", type="radios", choices=[("", "System"), ("light", "Light"), ("dark", "Dark")]
        ),
        "keys": Control("Keyboard shortcuts", type="radios", choices=[("on", "On"), ("off", "Off")]),
        "rail": Control("Sidebar", type="radios", choices=[("off", "Icons and names"), ("on", "Icons only")]),
    },
)


class NoticesForm(Input):
    """Conditions for e-mails about jobs that the user started."""

    mail: Literal["never", "failed", "always"]
    minutes: Annotated[int, Field(ge=0, le=limits.NOTICE_MAX_MINUTES)]


NOTICES: Final = FormSpec(
    NoticesForm,
    {
        "mail": Control(
            "Send e-mail when an export, a push or a run that I started",
            hint="A push with failed rows counts as failed.",
            type="radios",
            choices=[("failed", "Fails"), ("always", "Finishes"), ("never", "Never")],
        ),
        "minutes": Control("Only if it took longer than (minutes)", attributes={"inputmode": "numeric"}),
    },
)


class EndForm(Input):
    """A user's password; empty after a recent sign-in."""

    password: Password = ""


END_SESSION: Final = FormSpec(
    EndForm,
    {"password": Control("Your password", type="password", autocomplete="current-password", required=True)},
)


class MeOut(Output):
    """The caller: user, workspace, project and permissions."""

    kind: str
    user_id: str | None
    user_name: str
    email: str
    workspace_id: str
    project_id: str | None
    team_id: str | None
    role: str | None
    workspace_role: str | None
    scopes: list[str] | None
    key_id: str | None
    plan: str
    limits: LimitsOut


def visitor() -> Visitor:
    """The browser of this request."""
    return Visitor(g.address, request.user_agent.string, g.request_id)


def safe_next(target: str) -> str:
    """Return a path of this site, or `/`, to prevent redirects to other sites."""
    parts = urlsplit(target)
    is_local = (
        target.startswith("/")
        and not target.startswith(("//", "/\\"))
        and not parts.scheme
        and not parts.netloc
    )
    return target if is_local and "\\" not in target and target.isprintable() else "/"


def complete_sign_in(result: SignInResult, target: str) -> Response:
    """Store a new browser session in a new cookie, or ask for the code. Nothing of the old cookie is kept, and its
    session is ended."""
    old_actor: Actor | None = g.actor
    cookie.clear()
    g.face = "person"
    if result.step:
        cookie[STEP_FIELD] = result.step
        return reply(redirect_to=url_for("sign_in.code"))
    if old_actor is not None:
        sign_in.sign_out(old_actor)
    cookie[authentication.SESSION_FIELD] = result.token
    cookie.permanent = True
    return reply(redirect_to=safe_next(target))


def _sign_in_page_with_error(_actor: Actor | None, error: ApiError) -> Response:
    return _sign_in_page("", request.form.get("next", "/"), error)


def _sign_in_page(problem: str, target: str, error: ApiError | None = None) -> Response:
    target = safe_next(target)
    name = current_app.config["SETTINGS"].oidc_name if oidc.is_configured() else ""
    form = SIGN_IN.render(
        {"next": target},
        sent=request.form if error else None,
        error=error,
        focus="" if name else None,
    )
    return reply(template="sign_in.html", problem=problem, form=form, next=target, provider=name)


@route(bp, "/sign-in", scope="public", query=SignInQuery, hidden=True)
def login(actor: Actor | None, query: SignInQuery) -> Response:
    """The sign-in page."""
    g.face = "person"
    if actor is not None:
        return reply(redirect_to=safe_next(query.next))
    problem = oidc.SIGN_IN_ERRORS.get(query.problem, "")
    return _sign_in_page(problem.format(name=current_app.config["SETTINGS"].oidc_name), query.next)


@route(
    bp,
    "/sign-in",
    ["POST"],
    scope="public",
    body=SignInForm,
    hidden=True,
    allows_api_keys=False,
    on_fault=_sign_in_page_with_error,
)
def sign_in_by_password(body: SignInForm) -> Response:
    """Sign in with e-mail address and password."""
    authentication.check_csrf()
    target = safe_next(body.next)
    return complete_sign_in(sign_in.by_password(body.email, body.password, visitor(), target), target)


@route(bp, "/sign-in/<token>", scope="public", hidden=True)
def link(token: str) -> Response:
    """The page of a one-time link: a button. The link is used by pressing it, not by previews that load it."""
    g.face = "person"
    return reply(template="sign_in_link.html", open=sign_in.link_is_open(token))


@route(bp, "/sign-in/<token>", ["POST"], scope="public", hidden=True)
def use_link(token: str) -> Response:
    """Use a one-time link."""
    g.face = "person"
    authentication.check_csrf()
    entered = sign_in.by_link(token, visitor())
    return complete_sign_in(entered, url_for("session.welcome") if entered.without_password else "/")


def _invitation_page_with_error(_actor: Actor | None, error: ApiError, token: str) -> Response:
    return _invitation_page(token, error)


def _invitation_page(token: str, error: ApiError | None) -> Response:
    row = people.invitation_by_token(token)
    has_account = people.find_user(row.email) is not None
    spec = ACCEPT_WITH_ACCOUNT if has_account else ACCEPT
    form = spec.render(sent=request.form if error else None, error=error)
    return reply(template="invitation.html", form=form, email=row.email, role=row.role, known=has_account)


@route(bp, "/invitations/accept/<token>", scope="public", hidden=True)
def invitation(token: str) -> Response:
    """The page of an invitation."""
    g.face = "person"
    return _invitation_page(token, None)


@route(
    bp,
    "/invitations/accept/<token>",
    ["POST"],
    scope="public",
    body=InvitationForm,
    hidden=True,
    on_fault=_invitation_page_with_error,
)
def accept_invitation(token: str, body: InvitationForm) -> Response:
    """Accept an invitation and sign in."""
    g.face = "person"
    authentication.check_csrf()
    return complete_sign_in(sign_in.by_invitation(token, body.name, body.password, visitor()), "/")


@route(bp, "/sign-out", ["POST"], scope="self", hidden=True, allows_api_keys=False)
def sign_out(actor: Actor) -> Response:
    """End this browser session."""
    sign_in.sign_out(actor)
    session.clear()
    return reply(redirect_to=url_for("session.login"))


@route(bp, "/session/project", ["POST"], scope="self", body=ProjectForm, hidden=True, allows_api_keys=False)
def switch_project(actor: Actor, body: ProjectForm) -> Response:
    """Switch to another project of the workspace."""
    project = tenancy.get(actor, Project, body.project_id, "member")
    browser = db.session.get_one(BrowserSession, actor.session_id)
    browser.project_id = project.id
    db.session.commit()
    return reply(redirect_to=safe_next(body.next))


@route(bp, "/me", scope="self", returns=MeOut)
def me(actor: Actor) -> Response:
    """Get the caller: user, workspace, project, role, scopes, limits."""
    return _profile(actor, None)


def _profile(
    actor: Actor, error: ApiError | None, failed: FormSpec | None = None, ends: str | None = None
) -> Response:
    """Render the profile. `failed` is the form that `error` belongs to; `ends` is the session that could not be ended,
    "" for all others."""
    user = db.session.get_one(User, actor.user_id)
    scopes = None if actor.scopes is None else sorted(actor.scopes)
    data = MeOut.from_row(actor, email=user.email, scopes=scopes)
    if g.face == "program":
        return reply(data)
    rows = db.session.scalars(sessions.own_sessions(actor).order_by(BrowserSession.last_seen_at.desc()))
    assert actor.user_id is not None
    has_password = user.password_hash is not None
    mail_choice = mail.get_preference(actor.user_id)

    def form(spec: FormSpec, values: dict[str, Any] | None = None, **options: Any) -> PageForm:
        if spec is failed:
            options |= {"sent": request.form, "error": error}
        return spec.render(values, **options)

    return reply(
        data,
        template="profile.html",
        name_form=form(PROFILE, {"name": data["user_name"]}),
        preferences_form=form(
            PREFERENCES,
            {
                "back": url_for("session.me"),
                "theme": request.cookies.get("theme", ""),
                "keys": "off" if request.cookies.get("keys") == "off" else "on",
                "rail": "on" if request.cookies.get("rail") == "on" else "off",
            },
        ),
        notices_form=form(NOTICES, {"mail": mail_choice.mail, "minutes": mail_choice.minutes}),
        password_form=form(PASSWORD, without=() if has_password else ("old_password",)),
        end_form=form(END_SESSION, id="again-"),
        password=lambda id: END_SESSION.render(id=f"{id}-")["password"],
        ends=ends,
        sessions=[SessionOut.from_row(row, current=row.id == actor.session_id) for row in rows],
        fresh=sessions.is_fresh(actor),
        two_factor=two_factor.get_state(actor.user_id),
        has_password=has_password,
        accounts=sign_in.linked_accounts(actor),
        mailed=mail.is_configured(),
    )


def render_profile_with_errors(failed: FormSpec) -> Callable[..., Response]:
    """Return a function that renders the profile with the error of one of its forms."""

    def again(actor: Actor, error: ApiError, session_id: str = "") -> Response:
        return _profile(actor, error, failed, session_id)

    return again


@route(
    bp,
    "/me",
    ["PATCH"],
    scope="self",
    body=ProfileForm,
    hidden=True,
    allows_api_keys=False,
    on_fault=render_profile_with_errors(PROFILE),
)
def change_me(actor: Actor, body: ProfileForm) -> Response:
    """Change one's own name."""
    people.rename_self(actor, body.name)
    return reply(redirect_to=url_for("session.me"), flash_message="Your name was changed.")


def _welcome_page(actor: Actor, error: ApiError | None = None) -> Response:
    form = WELCOME.render({"name": actor.user_name}, sent=request.form if error else None, error=error)
    return reply(template="welcome.html", form=form)


@route(bp, "/welcome", scope="self", hidden=True, allows_api_keys=False)
def welcome(actor: Actor) -> Response:
    """Ask a user who came by a one-time link for a password; others are redirected to the home page."""
    if sign_in.has_password(actor):
        return reply(redirect_to="/")
    return _welcome_page(actor)


@route(
    bp,
    "/welcome",
    ["POST"],
    scope="self",
    body=WelcomeForm,
    hidden=True,
    allows_api_keys=False,
    on_fault=_welcome_page,
)
def set_up(actor: Actor, body: WelcomeForm) -> Response:
    """Set one's name and first password."""
    sign_in.change_password(actor, "", body.new_password)
    if body.name != actor.user_name:
        people.rename_self(actor, body.name)
    return reply(redirect_to="/", flash_message="Your password was saved. Sign in with it from now on.")


@route(
    bp,
    "/me/password",
    ["POST"],
    scope="self",
    body=PasswordForm,
    hidden=True,
    allows_api_keys=False,
    on_fault=render_profile_with_errors(PASSWORD),
)
def change_password(actor: Actor, body: PasswordForm) -> Response:
    """Set a new password; other sessions end."""
    sign_in.change_password(actor, body.old_password, body.new_password)
    return reply(
        redirect_to=url_for("session.me"),
        flash_message="Your password was changed. Your other sessions have ended.",
    )


# --- Browser sessions of the user ---------------------------------------------------------------------------

sessions_bp = Blueprint("sessions", __name__)


class EndedOut(Output):
    """Number of ended sessions."""

    ended: int


def _submitted_password() -> str:
    return parse(EndForm, {"password": request.form.get("password", "")}).password


def _session_json(actor: Actor, row: BrowserSession) -> dict[str, Any]:
    return SessionOut.from_row(row, current=row.id == actor.session_id)


@route(
    sessions_bp,
    "/me/sessions",
    scope="self",
    query=ListQuery,
    returns=ListOf(SessionOut),
    errors=["forbidden"],
)
def index(actor: Actor, query: ListQuery) -> Response:
    """List the browser sessions of the key's owner. Not allowed for keys with scopes."""
    if g.face == "person":
        return reply(redirect_to=url_for("session.me"))
    found = pagination.paginate(
        sessions.own_sessions(actor),
        name="sessions",
        id_column=BrowserSession.id,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, BrowserSession.user_agent),
        context=actor.user_id or "",
    )
    return reply(found.as_dict(lambda row: _session_json(actor, row)))


@route(
    sessions_bp, "/me/sessions", ["DELETE"], scope="self", returns=EndedOut, errors=["forbidden"],
    on_fault=render_profile_with_errors(END_SESSION),
)  # fmt: skip
def end_others(actor: Actor) -> Response:
    """End all sessions except the current one, or all if called with a key. Not allowed for keys with scopes."""
    sessions.check_may_end(actor, None, _submitted_password())
    ended = sessions.end_others(actor)
    message = (
        "There were no other sessions." if not ended else f"{ended} other session{'s' * (ended > 1)} ended."
    )
    return reply(
        EndedOut.from_row({"ended": ended}), redirect_to=url_for("session.me"), flash_message=message
    )


@route(
    sessions_bp,
    "/me/sessions/<session_id>",
    ["DELETE"],
    scope="self",
    returns=SessionOut,
    errors=["forbidden", "version_conflict"],
    on_fault=render_profile_with_errors(END_SESSION),
)
def end_one(actor: Actor, session_id: str) -> Response:
    """End a session and sign its browser out. Not allowed for keys with scopes."""
    sessions.check_may_end(actor, session_id, _submitted_password())
    row = sessions.load(actor, session_id)
    data = _session_json(actor, row)
    check_if_match(data)
    sessions.end(actor, row)
    return reply(data, redirect_to=url_for("session.me"), flash_message="The session has ended.")


# --- Home page and preferences ------------------------------------------------------------------------------

pages_bp = Blueprint("pages", __name__)
_YEAR_SECONDS: Final = 31_536_000  # lifetime of the display settings in a browser, in seconds


@route(pages_bp, "/profile", scope="self", hidden=True, allows_api_keys=False)
def profile() -> Response:
    """Redirect to the user's profile."""
    return see_other(url_for("session.me"))


@route(pages_bp, "/settings", scope="self", hidden=True, allows_api_keys=False)
def settings() -> Response:
    """Redirect to the first page of the settings."""
    return see_other(url_for("session.me"))


@route(pages_bp, "/files", scope="self", hidden=True, allows_api_keys=False)
def files() -> Response:
    """Redirect to the workspace's files."""
    return see_other(url_for("workspace_files.index"))


@route(
    pages_bp,
    "/session/preferences",
    ["POST"],
    scope="self",
    body=PreferencesForm,
    reads=True,
    hidden=True,
    allows_api_keys=False,
    on_fault=render_profile_with_errors(PREFERENCES),
)
def preferences(body: PreferencesForm) -> Response:
    """Theme, keyboard shortcuts and width of the sidebar, saved in this browser."""
    response = see_other(safe_next(body.back))
    for name, value in (("theme", body.theme), ("keys", body.keys), ("rail", body.rail)):
        if value is not None:
            response.set_cookie(name, value, max_age=_YEAR_SECONDS, samesite="Lax", secure=request.is_secure)
    return response
