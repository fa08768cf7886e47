import { MCP_CREDENTIAL_NAME, MCP_VAULT_PREFIX, mcpVaultPath, type McpServer } from '../model/mcp_server.ts';
import { err, ok, type Result } from '../model/result.ts';
import { VAULT_SCHEME } from '../model/vault_path.ts';

/** A part of a value: fixed text, or a credential that is filled in at launch. */
type ReferencePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reference'; readonly serverId: string; readonly name: string; readonly path: string };

const REFERENCE = /vault:\/\/mcp-servers\/(mcp_[0-7][0-9a-hjkmnp-tv-z]{25})\/([A-Za-z_][A-Za-z0-9_]*)/y;
const SCHEME = /vault:\/\//gi;
const REFERENCE_RULE = `write ${VAULT_SCHEME}${MCP_VAULT_PREFIX}/<the server's own id>/<NAME>`;

/** What is wrong with the name of a server's credential, as a predicate; null if it is valid. */
export function credentialNameProblem(name: string): string | null {
  if (/^svc_/i.test(name)) return 'begins with "SVC_", which the service keeps for itself; choose another name';
  if (MCP_CREDENTIAL_NAME.test(name)) return null;
  return 'is not a name of A-Z, a-z, 0-9 and "_" that begins with a letter or "_" and has at most 128 characters';
}

/** `vault://mcp-servers/<id>/<NAME>`. */
export function mcpReference(serverId: string, name: string): string {
  return VAULT_SCHEME + mcpVaultPath(serverId, name);
}

/**
 * The parts of a value, in order; a name extends as far as name characters do. Every `vault://` must be a complete reference
 * to a server's credential. Text that is almost a reference is an error, so that it never reaches a server as plain text.
 * The error is a predicate for the value, and quotes nothing of it.
 */
export function splitReferences(text: string): Result<readonly ReferencePart[], string> {
  const parts: ReferencePart[] = [];
  let end = 0;
  for (const found of text.matchAll(SCHEME)) {
    if (found.index < end)
      return err('has a reference that runs into the next one; put another character between them');
    REFERENCE.lastIndex = found.index;
    const match = REFERENCE.exec(text);
    const [whole, serverId, name] = match ?? [];
    if (whole === undefined || serverId === undefined || name === undefined) {
      return err(`has a vault:// that is no reference to a credential of an MCP server; ${REFERENCE_RULE}`);
    }
    const problem = credentialNameProblem(name);
    if (problem !== null) return err(`refers to a credential whose name ${problem}`);
    if (found.index > end) parts.push({ kind: 'text', text: text.slice(end, found.index) });
    parts.push({ kind: 'reference', serverId, name, path: mcpVaultPath(serverId, name) });
    end = found.index + whole.length;
  }
  if (end < text.length) parts.push({ kind: 'text', text: text.slice(end) });
  return ok(parts);
}

/** True if the value contains a credential reference, or something that looks like one. */
export function hasReference(text: string): boolean {
  return text.search(SCHEME) >= 0;
}

/** The fields of a server that may contain references. */
type ReferringServer = Pick<McpServer, 'id' | 'command' | 'env' | 'url' | 'headers'>;

/**
 * What is wrong with the places of a server's references, naming the field; null if nothing is. Allowed are values of `env`
 * and `headers`, arguments after the program, and the query of `url`; and only the server's own credentials, so that nobody
 * can have another server's secret sent to their own program.
 */
export function referenceProblem(server: ReferringServer): string | null {
  const [program = '', ...args] = server.command;
  if (hasReference(program)) return 'command[0] has a vault:// reference; name a program there';
  const url = server.url ?? '';
  const queryStart = url.indexOf('?');
  const beforeQuery = queryStart < 0 ? url : url.slice(0, queryStart);
  if (hasReference(beforeQuery))
    return 'url has a vault:// reference before its query; put it into the query or a header';
  if (hasReference(url) && url.includes('#')) return 'url has a fragment, which is never sent; remove it';
  return (
    valuesProblem(
      server.id,
      args.map((value, index) => [`command[${index + 1}]`, value] as const),
    ) ??
    valuesProblem(server.id, listNamedValues('env', server.env)) ??
    valuesProblem(server.id, listNamedValues('headers', server.headers)) ??
    valuesProblem(server.id, [['url', url]])
  );
}

/** The vault paths that a server's configuration refers to, each once, in text order. */
export function referencesOf(server: McpServer): readonly string[] {
  const paths = new Set<string>();
  for (const value of valuesOf(server)) {
    const parts = splitReferences(value);
    if (!parts.ok) continue;
    for (const part of parts.value) if (part.kind === 'reference') paths.add(part.path);
  }
  return [...paths];
}

/** The resolved values that a server is started or called with. */
export interface LaunchValues {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * A server's values with its credentials in place of the references, percent-encoded in the query of `url`. `values` is by
 * vault path. A reference that is invalid, to another server or without a value is an error that names the place and never a
 * value. No server is started with an unresolved reference.
 */
export function withReferences(server: McpServer, values: ReadonlyMap<string, string>): Result<LaunchValues, string> {
  const problem = referenceProblem(server);
  if (problem !== null) return err(problem);
  const missing = referencesOf(server).find((path) => values.get(path) === undefined);
  if (missing !== undefined) return err(`no value is stored for ${VAULT_SCHEME}${missing}`);
  const unwritable = [...values.values()].some((value) => /\p{Cs}/u.test(value));
  if (unwritable) return err('a stored value is not well-formed Unicode; store it again');
  const fill = (text: string) => fillReferences(text, values, (value) => value);
  return ok({
    command: server.command.map(fill),
    env: mapRecord(server.env, fill),
    url: server.url === null ? null : fillReferences(server.url, values, encodeURIComponent),
    headers: mapRecord(server.headers, fill),
  });
}

function fillReferences(text: string, values: ReadonlyMap<string, string>, written: (value: string) => string): string {
  const parts = splitReferences(text);
  if (!parts.ok) throw new Error('a checked value has an invalid reference');
  return parts.value.map((part) => (part.kind === 'text' ? part.text : written(values.get(part.path) ?? ''))).join('');
}

function mapRecord(record: Readonly<Record<string, string>>, change: (text: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function valuesOf(server: McpServer): readonly string[] {
  const url = server.url === null ? [] : [server.url];
  return [...server.command.slice(1), ...Object.values(server.env), ...Object.values(server.headers), ...url];
}

function listNamedValues(
  field: string,
  record: Readonly<Record<string, string>>,
): readonly (readonly [string, string])[] {
  return Object.entries(record).map(([name, value]) => [`${field}.${name}`, value] as const);
}

function valuesProblem(serverId: string, places: readonly (readonly [string, string])[]): string | null {
  for (const [place, value] of places) {
    const parts = splitReferences(value);
    if (!parts.ok) return `${place} ${parts.error}`;
    const foreign = parts.value.some((part) => part.kind === 'reference' && part.serverId !== serverId);
    if (foreign) return `${place} refers to a credential of another server; ${REFERENCE_RULE}`;
  }
  return null;
}
