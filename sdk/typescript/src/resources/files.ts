import { notConfigured } from "../errors.js";
import type { Pages } from "../pages.js";
import type { ByteStream } from "../streams.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling, tag } from "./base.js";

const ONE = "/workspace/files/{name:path}";

/** What a file is made of: a text (as UTF-8), bytes, or a Blob, as which files of the disk are read in pieces. */
export type Content = string | Uint8Array | ArrayBuffer | Blob;

/** How a file is uploaded. */
export interface Uploading extends Creating, Changing {
  contentType?: string;
  /** VersionConflict where the name is there already. */
  onlyNew?: boolean;
  /** For the whole workspace, and not for the project alone. */
  shared?: boolean;
}

/** `client.files`. A file goes by its name, which may hold folders, or by its id. */
export class Files extends Resource {
  /**
   * List the files of the project, and those shared with the workspace. `folder`: those under it, at any depth.
   * `run_id`: those of a run, its uploads and its own outputs.
   */
  list(
    query?: { q?: string; folder?: string; sort?: string; run_id?: string },
    how?: Calling,
  ): Pages<types.FileOut> {
    return this.list_("/workspace/files", {}, query, how);
  }

  /** Upload a file, in place of one of that name. */
  upload(name: string, content: Content, how: Uploading = {}): Promise<types.UploadedOut> {
    if (!name) throw notConfigured("A file needs a name.");
    const form = new FormData();
    form.append("name", name);
    if (how.shared) form.append("shared", "true");
    form.append("file", blobOf(content, how.contentType), name.slice(name.lastIndexOf("/") + 1));
    const headers = { ...tag(how), ...(how.onlyNew ? { "If-None-Match": "*" } : {}) };
    const idempotencyKey = how.idempotencyKey ?? true;
    return this.caller.json("POST", "/workspace/files", { body: form, headers, idempotencyKey, ...calling(how) });
  }

  /** The file's bytes. */
  async read(name: string, how?: Calling): Promise<Uint8Array> {
    return (await this.stream(name, how)).bytes();
  }

  /** The file, as it comes; after a break the rest is asked for. */
  stream(name: string, how?: Calling): Promise<ByteStream> {
    return this.file_(ONE, { name }, how);
  }

  /** Delete a file; it can be restored for 30 days. */
  delete(name: string, how?: Changing): Promise<types.FileOut> {
    return this.delete_(ONE, { name }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.FileOut> {
    return this.ask_("/workspace/files/{file_id}/restore", { file_id: id }, undefined, how);
  }
}

/** Content as a body that can be sent again. */
export function blobOf(content: Content, type?: string): Blob {
  if (content instanceof Blob && !type) return content;
  return new Blob([content as BlobPart], { type: type ?? "application/octet-stream" });
}
