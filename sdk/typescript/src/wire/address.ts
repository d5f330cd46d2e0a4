/** The address of the service, and how paths and queries are built. */

import { NotFound, notConfigured } from "../errors.js";

/** Values for the `{parts}` of a path. */
export type Parts = Record<string, string | number>;

/** Return a URL as base for all others, without a trailing slash. Throws `not_configured` if it is invalid. */
export function baseOf(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url.trim());
  } catch {
    throw notConfigured(`${JSON.stringify(url)} is not a URL. Example: https://rowsmith.example.com`);
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") {
    throw notConfigured(`${JSON.stringify(url)} is not an https URL.`);
  }
  if (parsed.username || parsed.password) {
    throw notConfigured("The URL must not contain a user name or password. The key is sent separately.");
  }
  if (parsed.search || parsed.hash) {
    throw notConfigured(`${JSON.stringify(url)} has a query or a fragment. Use the URL without them.`);
  }
  const base = parsed.origin + parsed.pathname.replace(/\/+$/, "");
  if (parsed.protocol === "http:" && !isLoopback(parsed.hostname)) {
    throw notConfigured(`${base} would send the key unencrypted. Use https.`);
  }
  return base;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

/**
 * Insert percent-encoded parts into a path: `/things/{id}`. A part written `{name:path}` keeps its slashes. Parts must
 * not be empty, `.` or `..`, because a different path would be called.
 */
export function pathOf(template: string, parts: Parts = {}): string {
  return template.replace(/\{(\w+)(:path)?\}/g, (_, name: string, slashes?: string) => {
    const text = String(parts[name] ?? "");
    return slashes ? text.split("/").map((one) => encoded(name, one)).join("/") : encoded(name, text);
  });
}

function encoded(name: string, text: string): string {
  if (text === "" || text === "." || text === "..") {
    throw new NotFound({ code: "not_found", message: `${JSON.stringify(text)} is not a valid value of ${name}.` });
  }
  return encodeURIComponent(text);
}

/** Return a query string such as `?a=b`, without undefined and null values. */
export function queryOf(query: object = {}): string {
  const told = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) told.append(name, String(value));
  }
  const text = told.toString();
  return text ? `?${text}` : "";
}
