/** The workspace: members, permissions and the audit log. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { rowsOf } from "../wire/events.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";

/** Filters of the audit log. */
export interface AuditQuery {
  q?: string;
  action?: string;
  kind?: string;
  object_id?: string;
  user_id?: string;
  key_id?: string;
  project_id?: string;
  address?: string;
  since?: string;
  until?: string;
  rows_min?: number;
  rows_max?: number;
  text?: string;
}

/** Period and grouping of the usage. */
export interface UsageQuery {
  by?: "project" | "template" | "key" | "person";
  step?: "hour" | "day";
  range?: "24h" | "7d" | "30d";
  from?: string;
  to?: string;
}

/** Filters and order of members. */
export interface MemberQuery {
  q?: string;
  sort?: "email" | "-email" | "name" | "-name" | "since" | "-since";
  team_id?: string;
  user_id?: string;
}

/** What to remove together with a member: team memberships, keys. */
export interface Removing extends Changing {
  everywhere?: boolean;
  revokeKeys?: boolean;
}

/** Filters of API keys. */
export interface KeyQuery {
  q?: string;
  created_by?: string;
  unused?: boolean;
}

/** Filters of deleted objects. */
export interface TrashQuery {
  q?: string;
  type?: "template" | "dataset" | "scenario" | "connection" | "endpoint" | "file" | "project" | "team";
}

/** `client.workspace`. */
export class Workspace extends Resource {
  /** The workspace. */
  get(how?: Calling): Promise<types.WorkspaceOut> {
    return this.get_("/workspace", {}, how);
  }

  /** Change its name, plan, limits or settings. */
  update(changes: types.WorkspacePatch, how?: Changing): Promise<types.WorkspaceOut> {
    return this.change_("PATCH", "/workspace", {}, changes, how);
  }

  /** Delete the workspace with all its contents immediately. `confirm` is its name. For owners only. */
  delete(confirm: string, how?: Changing): Promise<types.WorkspaceOut> {
    return this.change_("DELETE", "/workspace", {}, { confirm }, how);
  }

  /** List deleted objects that can be restored, of one `type` or of all types. */
  trash(query?: TrashQuery, how?: Calling): Pages<types.TrashedOut> {
    return this.list_("/trash", {}, query, how);
  }

  /** List what uses a template, dataset, scenario, connection, endpoint, file, secret, project or team. */
  usedBy(id: string, how?: Calling): Promise<types.UsesOut> {
    return this.get_("/used-by/{object_id}", { object_id: id }, how);
  }

  /** Return the limits, their current use, and the usage over time. */
  usage(query?: UsageQuery, how?: Calling): Promise<types.UsageOut> {
    return this.get_("/usage", {}, how, query);
  }

  /** Return the owner, project and permissions of this key. */
  me(how?: Calling): Promise<types.MeOut> {
    return this.get_("/me", {}, how);
  }

  /** List the browser sessions of this key's owner. Only for keys without scopes. */
  sessions(query?: { q?: string }, how?: Calling): Pages<types.SessionOut> {
    return this.list_("/me/sessions", {}, query, how);
  }

  /** Sign this key's owner out of all browsers. Only for keys without scopes. */
  endSessions(how?: Changing): Promise<types.EndedOut> {
    return this.delete_("/me/sessions", {}, how);
  }

  /** End one browser session. Only for keys without scopes. */
  endSession(id: string, how?: Changing): Promise<types.SessionOut> {
    return this.delete_("/me/sessions/{session_id}", { session_id: id }, how);
  }

  /** List audit entries, newest first. */
  audit(query?: AuditQuery, how?: Calling): Pages<types.AuditOut> {
    return this.list_("/audit", {}, query, how);
  }

  /** Stream all entries with the same filters, for archives. */
  async *auditStream(query: AuditQuery = {}, how: Calling = {}): AsyncGenerator<types.AuditOut, void, undefined> {
    const asked = { ...query, format: "jsonl" };
    const answer = await this.caller.open("GET", "/audit", { query: asked, ...calling(how) });
    try {
      for await (const lines of rowsOf(answer.pieces())) yield* lines.map((line) => JSON.parse(line));
    } finally {
      answer.close();
    }
  }

  /** List the seals of the audit log, newest first. */
  auditSeals(how?: Calling): Pages<types.SealOut> {
    return this.list_("/audit/seals", {}, undefined, how);
  }
}

/** `client.members`: members and invited users. */
export class Members extends Resource {
  /** List the members with their roles in the workspace and its teams. */
  list(query?: MemberQuery, how?: Calling): Pages<types.MemberOut> {
    return this.list_("/members", {}, query, how);
  }

  /** Give a member of the workspace (`user_id`) a role in a team (`team_id`). */
  add(member: types.MemberIn, how?: Creating): Promise<types.MemberOut> {
    return this.make_("/members", {}, member, how);
  }

  /** A member. */
  get(id: string, how?: Calling): Promise<types.MemberOut> {
    return this.get_("/members/{member_id}", { member_id: id }, how);
  }

  /** Change a member's role. */
  update(id: string, changes: types.MemberPatch, how?: Changing): Promise<types.MemberOut> {
    return this.change_("PATCH", "/members/{member_id}", { member_id: id }, changes, how);
  }

  /** Remove a member. `everywhere` also removes them from all teams; `revokeKeys` revokes all their keys. */
  remove(id: string, how: Removing = {}): Promise<types.MemberOut> {
    const query = { everywhere: how.everywhere, revoke_keys: how.revokeKeys };
    return this.delete_("/members/{member_id}", { member_id: id }, how, query);
  }

  /** List open invitations. */
  invitations(query?: { q?: string }, how?: Calling): Pages<types.InvitationOut> {
    return this.list_("/invitations", {}, query, how);
  }

  /** Invite someone by `email`. The response contains the link to send to them. */
  invite(invitation: types.InvitationIn, how?: Creating): Promise<types.NewInvitationOut> {
    return this.make_("/invitations", {}, invitation, how);
  }

  /** Create a new link for an invitation. The previous link becomes invalid. */
  resend(id: string, how?: Calling): Promise<types.NewInvitationOut> {
    return this.ask_("/invitations/{invitation_id}/resend", { invitation_id: id }, undefined, how, false);
  }

  /** Withdraw an invitation. */
  withdraw(id: string, how?: Calling): Promise<types.InvitationOut> {
    return this.delete_("/invitations/{invitation_id}", { invitation_id: id }, how);
  }
}

/** `client.teams`. */
export class Teams extends Resource {
  /** The teams. */
  list(query?: { q?: string }, how?: Calling): Pages<types.TeamOut> {
    return this.list_("/teams", {}, query, how);
  }

  /** A team. */
  get(id: string, how?: Calling): Promise<types.TeamOut> {
    return this.get_("/teams/{team_id}", { team_id: id }, how);
  }

  /** Create a team. */
  create(team: types.TeamIn, how?: Creating): Promise<types.TeamOut> {
    return this.make_("/teams", {}, team, how);
  }

  /** Rename a team. */
  update(id: string, changes: types.TeamIn, how?: Changing): Promise<types.TeamOut> {
    return this.change_("PATCH", "/teams/{team_id}", { team_id: id }, changes, how);
  }

  /** Delete a team without projects. It can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.TeamOut> {
    return this.delete_("/teams/{team_id}", { team_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.TeamOut> {
    return this.ask_("/teams/{team_id}/restore", { team_id: id }, undefined, how);
  }
}

/** `client.projects`. */
export class Projects extends Resource {
  /** List the projects that this key's owner can access. */
  list(query?: { q?: string }, how?: Calling): Pages<types.ProjectOut> {
    return this.list_("/projects", {}, query, how);
  }

  /** A project. */
  get(id: string, how?: Calling): Promise<types.ProjectOut> {
    return this.get_("/projects/{project_id}", { project_id: id }, how);
  }

  /** Create a project: `name`, optionally `description` and `team_id`. */
  create(project: types.ProjectIn, how?: Creating): Promise<types.ProjectOut> {
    return this.make_("/projects", {}, project, how);
  }

  /** Change name, description or team. */
  update(id: string, changes: types.ProjectPatch, how?: Changing): Promise<types.ProjectOut> {
    return this.change_("PATCH", "/projects/{project_id}", { project_id: id }, changes, how);
  }

  /** Delete a project. It can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.ProjectOut> {
    return this.delete_("/projects/{project_id}", { project_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.ProjectOut> {
    return this.ask_("/projects/{project_id}/restore", { project_id: id }, undefined, how);
  }

  /** Move objects into this project, by ID. `related` says what happens to related objects. */
  move(id: string, moving: types.MoveIn, how?: Calling): Promise<types.MovesOut> {
    return this.ask_("/projects/{project_id}/move", { project_id: id }, moving, how);
  }
}

/** `client.apiKeys`. */
export class ApiKeys extends Resource {
  /** List the keys, without their secrets. */
  list(query?: KeyQuery, how?: Calling): Pages<types.ApiKeyOut> {
    return this.list_("/api-keys", {}, query, how);
  }

  /** Return a key, without its secret. */
  get(id: string, how?: Calling): Promise<types.ApiKeyOut> {
    return this.get_("/api-keys/{key_id}", { key_id: id }, how);
  }

  /** Create a key. The response contains it in `key`; it is not shown again. */
  create(key: types.ApiKeyIn, how?: Creating): Promise<types.NewApiKeyOut> {
    return this.make_("/api-keys", {}, key, how);
  }

  /** Revoke a key. */
  revoke(id: string, how?: Changing): Promise<types.ApiKeyOut> {
    return this.delete_("/api-keys/{key_id}", { key_id: id }, how);
  }

  /** Revoke all keys of a user permanently. */
  revokeAll(createdBy: string, how?: Calling): Promise<types.RevokedOut> {
    return this.delete_("/api-keys", {}, how, { created_by: createdBy });
  }
}

/** `client.secrets`. Values are never returned. */
export class Secrets extends Resource {
  /** List the names of the secrets. */
  list(query?: { q?: string }, how?: Calling): Pages<types.SecretOut> {
    return this.list_("/secrets", {}, query, how);
  }

  /** Create or change a secret: its value, and optionally its allowed hosts. Omitted values stay unchanged. */
  put(name: string, value: string | types.SecretIn, how?: Calling): Promise<types.SecretOut> {
    return this.change_("PUT", "/secrets/{name}", { name }, typeof value === "string" ? { value } : value, how);
  }

  /** Delete a secret. */
  delete(name: string, how?: Calling): Promise<types.SecretOut> {
    return this.delete_("/secrets/{name}", { name }, how);
  }
}
