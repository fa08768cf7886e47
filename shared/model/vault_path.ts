import { err, ok, type Result } from './result.ts';
import type { Problem } from './problem.ts';

export const VAULT_SCHEME = 'vault://';
export const MAX_VAULT_PATH_LENGTH = 256;

/** First segments that are reserved for the service (design section 7); nobody else stores or binds a secret below them. */
const RESERVED_VAULT_PREFIXES = ['mcp-servers', 'connectors', 'pending-login', 'shared-bindings'] as const;

/** Messages never quote the text, because people paste the secret itself in place of its path. */
export type VaultPathProblemReason = 'invalid_vault_path' | 'reserved_vault_path';

const SEGMENT = /^[a-z0-9][a-z0-9._-]*$/;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const PATH_RULE =
  'write segments separated by "/", each of a-z, 0-9, ".", "_" and "-" and beginning with a letter or digit, such as user/demo';

/**
 * Checks a vault path: `segment(/segment)*`. The last segment of `mcp-servers/{id}/{env_var_name}` is an environment
 * variable's name. Accepts reserved prefixes; see {@link parseOwnVaultPath}.
 */
export function parseVaultPath(text: string): Result<string, Problem<VaultPathProblemReason>> {
  if (text === '') return invalid(`is empty; ${PATH_RULE}`);
  if (text.length > MAX_VAULT_PATH_LENGTH) {
    return invalid(`has ${text.length} characters, more than ${MAX_VAULT_PATH_LENGTH}; choose a shorter path`);
  }
  const segments = text.split('/');
  for (const [index, segment] of segments.entries()) {
    if (SEGMENT.test(segment)) continue;
    if (isEnvNameSegment(segments, index) && ENV_NAME.test(segment)) continue;
    return invalid(segmentProblem(segment, index));
  }
  return ok(text);
}

/** A vault path at which a person may store a secret, or to which a person may refer: valid, and not below a reserved prefix. */
export function parseOwnVaultPath(text: string): Result<string, Problem<VaultPathProblemReason>> {
  const path = parseVaultPath(text);
  if (!path.ok || !isReservedVaultPath(path.value)) return path;
  const reserved = path.value.split('/')[0] ?? '';
  const message = `the vault path begins with the reserved "${reserved}/", which the service manages itself; choose another first segment`;
  return err({ reason: 'reserved_vault_path', message });
}

/** The path of a reference `vault://<path>` that a person may use. */
export function parseVaultReference(text: string): Result<string, Problem<VaultPathProblemReason>> {
  if (text.startsWith(VAULT_SCHEME)) return parseOwnVaultPath(text.slice(VAULT_SCHEME.length));
  const message = `must be a reference such as vault://user/demo, never the credential itself (store that with "svc secret set user/demo"); the value given is not shown because it may be a secret`;
  return err({ reason: 'invalid_vault_path', message });
}

/**
 * The path of a reference in a host binding: one that a person may use, or the credential of a connector. The control plane
 * accepts the latter only for the login of a program, at the hosts that its connector names.
 */
export function parseBindingReference(text: string): Result<string, Problem<VaultPathProblemReason>> {
  const path = text.startsWith(`${VAULT_SCHEME}connectors/`) ? parseVaultPath(text.slice(VAULT_SCHEME.length)) : null;
  return path?.ok === true && path.value.split('/').length === 3 ? path : parseVaultReference(text);
}

const SHARED_PREFIX = 'shared-bindings';

/** A credential of a binding that another person shares. Its own path in the vault is not shown. */
export interface SharedCredential {
  readonly bindingId: string;
  readonly part: 'credential' | 'session-token';
}

/** The path by which sidecars ask for the credential of a shared binding. Nobody can write a binding that refers to it. */
export function sharedVaultPath({ bindingId, part }: SharedCredential): string {
  return `${SHARED_PREFIX}/${bindingId}/${part}`;
}

/** The credential that such a path names; null for other paths. */
export function parseSharedPath(path: string): SharedCredential | null {
  const [prefix, bindingId = '', part, ...rest] = path.split('/');
  if (prefix !== SHARED_PREFIX || bindingId === '' || rest.length > 0) return null;
  return part === 'credential' || part === 'session-token' ? { bindingId, part } : null;
}

/** What the receiver of a shared binding is told whose secret is not stored. */
export const SHARED_SECRET_MISSING =
  'The secret of this shared binding is not stored. Ask whoever shares it: "svc share list --received" shows the name.';

/** The path of a reference in a binding that the control plane sends: one that a person wrote, or a shared credential. */
export function parseSentReference(text: string): Result<string, Problem<VaultPathProblemReason>> {
  const path = text.startsWith(VAULT_SCHEME) ? text.slice(VAULT_SCHEME.length) : '';
  return parseSharedPath(path) === null ? parseBindingReference(text) : parseVaultPath(path);
}

/** `vault://<path>`. */
export function formatVaultReference(path: string): string {
  return VAULT_SCHEME + path;
}

/** Whether the path is at or below a reserved prefix. */
export function isReservedVaultPath(path: string): boolean {
  const end = path.indexOf('/');
  const first = end < 0 ? path : path.slice(0, end);
  return RESERVED_VAULT_PREFIXES.some((prefix) => prefix === first);
}

function isEnvNameSegment(segments: readonly string[], index: number): boolean {
  return index === 2 && segments.length === 3 && segments[0] === 'mcp-servers';
}

function segmentProblem(segment: string, index: number): string {
  const where = `segment ${index + 1}`;
  if (segment === '') return `has an empty ${where}; remove the extra "/"`;
  if (/[A-Z]/.test(segment)) return `has upper-case letters in ${where}; ${PATH_RULE}`;
  return `has a character in ${where} that is not allowed; ${PATH_RULE}`;
}

function invalid(problem: string): Result<never, Problem<VaultPathProblemReason>> {
  return err({ reason: 'invalid_vault_path', message: `the vault path ${problem}` });
}
