/** The workspace, who is in it, what they may do and what they did. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { rowsOf } from "../wire/events.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";

/** What of the audit is wanted. */
export interface AuditQuery {
  q?: string;
  action?: string;
  object_id?: string;
  user_id?: string;
  key_id?: string;
  since?: string;
  until?: string;
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

  /** Requests of the minute and rows of the hour, with their limits. */
  usage(how?: Calling): Promise<types.UsageOut> {
    return this.get_("/usage", {}, how);
  }

  /** Whose key this is, where, and what it may do. */
  me(how?: Calling): Promise<types.MeOut> {
    return this.get_("/me", {}, how);
  }

  /** What was done, newest first. */
  audit(query?: AuditQuery, how?: Calling): Pages<types.AuditOut> {
    return this.list_("/audit", {}, query, how);
  }

  /** The same as one stream of all entries, for archives. */
  async *auditStream(query: AuditQuery = {}, how: Calling = {}): AsyncGenerator<types.AuditOut, void, undefined> {
    const asked = { ...query, format: "jsonl" };
    const answer = await this.caller.open("GET", "/audit", { query: asked, ...calling(how) });
    try {
      for await (const lines of rowsOf(answer.pieces())) yield* lines.map((line) => JSON.parse(line));
    } finally {
      answer.close();
    }
  }
}

/** `client.members`: people, and those who are invited. */
export class Members extends Resource {
  /** The members. */
  list(query?: { q?: string }, how?: Calling): Pages<types.MemberOut> {
    return this.list_("/members", {}, query, how);
  }

  /** A member. */
  get(id: string, how?: Calling): Promise<types.MemberOut> {
    return this.get_("/members/{member_id}", { member_id: id }, how);
  }

  /** Give a member another role. */
  update(id: string, changes: types.MemberPatch, how?: Changing): Promise<types.MemberOut> {
    return this.change_("PATCH", "/members/{member_id}", { member_id: id }, changes, how);
  }

  /** Take somebody out. */
  remove(id: string, how?: Changing): Promise<types.MemberOut> {
    return this.delete_("/members/{member_id}", { member_id: id }, how);
  }

  /** The invitations that are open. */
  invitations(query?: { q?: string }, how?: Calling): Pages<types.InvitationOut> {
    return this.list_("/invitations", {}, query, how);
  }

  /** Invite somebody by `email`; the answer has the address to give them. */
  invite(invitation: types.InvitationIn, how?: Creating): Promise<types.NewInvitationOut> {
    return this.make_("/invitations", {}, invitation, how);
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

  /** Make a team. */
  create(team: types.TeamIn, how?: Creating): Promise<types.TeamOut> {
    return this.make_("/teams", {}, team, how);
  }

  /** Rename a team. */
  update(id: string, changes: types.TeamIn, how?: Changing): Promise<types.TeamOut> {
    return this.change_("PATCH", "/teams/{team_id}", { team_id: id }, changes, how);
  }
}

/** `client.projects`. */
export class Projects extends Resource {
  /** The projects that this key's maker sees. */
  list(query?: { q?: string }, how?: Calling): Pages<types.ProjectOut> {
    return this.list_("/projects", {}, query, how);
  }

  /** A project. */
  get(id: string, how?: Calling): Promise<types.ProjectOut> {
    return this.get_("/projects/{project_id}", { project_id: id }, how);
  }

  /** Make a project: `name`, perhaps `description` and `team_id`. */
  create(project: types.ProjectIn, how?: Creating): Promise<types.ProjectOut> {
    return this.make_("/projects", {}, project, how);
  }

  /** Change name or description. */
  update(id: string, changes: types.ProjectPatch, how?: Changing): Promise<types.ProjectOut> {
    return this.change_("PATCH", "/projects/{project_id}", { project_id: id }, changes, how);
  }

  /** Delete a project; it can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.ProjectOut> {
    return this.delete_("/projects/{project_id}", { project_id: id }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.ProjectOut> {
    return this.ask_("/projects/{project_id}/restore", { project_id: id }, undefined, how);
  }
}

/** `client.apiKeys`. */
export class ApiKeys extends Resource {
  /** The keys, without their secrets. */
  list(query?: { q?: string }, how?: Calling): Pages<types.ApiKeyOut> {
    return this.list_("/api-keys", {}, query, how);
  }

  /** A key, without its secret. */
  get(id: string, how?: Calling): Promise<types.ApiKeyOut> {
    return this.get_("/api-keys/{key_id}", { key_id: id }, how);
  }

  /** Make a key; `key` of the answer is shown this once. */
  create(key: types.ApiKeyIn, how?: Creating): Promise<types.NewApiKeyOut> {
    return this.make_("/api-keys", {}, key, how);
  }

  /** Revoke a key. */
  revoke(id: string, how?: Changing): Promise<types.ApiKeyOut> {
    return this.delete_("/api-keys/{key_id}", { key_id: id }, how);
  }
}

/** `client.secrets`. Values never come back. */
export class Secrets extends Resource {
  /** The names of the secrets. */
  list(query?: { q?: string }, how?: Calling): Pages<types.SecretOut> {
    return this.list_("/secrets", {}, query, how);
  }

  /** Set a secret, new or not. */
  put(name: string, value: string, how?: Calling): Promise<types.SecretOut> {
    return this.change_("PUT", "/secrets/{name}", { name }, { value }, how);
  }

  /** Delete a secret. */
  delete(name: string, how?: Calling): Promise<types.SecretOut> {
    return this.delete_("/secrets/{name}", { name }, how);
  }
}
