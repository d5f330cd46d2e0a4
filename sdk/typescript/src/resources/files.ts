import { notConfigured } from "../errors.js";
import type { Pages } from "../pages.js";
import type { ByteStream } from "../streams.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling, tag } from "./base.js";

const ONE = "/workspace/files/{name:path}";

/** The content of a file: a text (as UTF-8), bytes, or a Blob, which is read in pieces if it is a local file. */
export type Content = string | Uint8Array | ArrayBuffer | Blob;

/** Options of an upload. */
export interface Uploading extends Creating, Changing {
  contentType?: string;
  /** Throws VersionConflict if the name exists. */
  onlyNew?: boolean;
  /** Share the file with the whole workspace. */
  shared?: boolean;
}

/** `client.files`. A file is addressed by its name, which may include folders, or by its ID. */
export class Files extends Resource {
  /**
   * List the files of the project, and those shared with the workspace. `folder`: the files below it, at any depth.
   * `run_id`: the files of a run, its uploads and its own outputs.
   */
  list(
    query?: { q?: string; folder?: string; sort?: string; run_id?: string },
    how?: Calling,
  ): Pages<types.FileOut> {
    return this.list_("/workspace/files", {}, query, how);
  }

  /** Upload a file, replacing a file with the same name. */
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

  /** Return the file's bytes. */
  async read(name: string, how?: Calling): Promise<Uint8Array> {
    return (await this.stream(name, how)).bytes();
  }

  /** Stream the file. After a broken connection the download is resumed. */
  stream(name: string, how?: Calling): Promise<ByteStream> {
    return this.file_(ONE, { name }, how);
  }

  /** Delete a file. It can be restored for 30 days. */
  delete(name: string, how?: Changing): Promise<types.FileOut> {
    return this.delete_(ONE, { name }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.FileOut> {
    return this.ask_("/workspace/files/{file_id}/restore", { file_id: id }, undefined, how);
  }
}

/** Return content as a body that can be sent again. */
export function blobOf(content: Content, type?: string): Blob {
  if (content instanceof Blob && !type) return content;
  return new Blob([content as BlobPart], { type: type ?? "application/octet-stream" });
}
