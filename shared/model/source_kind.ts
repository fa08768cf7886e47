import { MCP_CREDENTIAL_NAME, mcpCredentialAt } from './mcp_server.ts';
import type { Problem } from './problem.ts';
import type { Result } from './result.ts';
import { parseOwnVaultPath, parseVaultPath, type VaultPathProblemReason } from './vault_path.ts';

/** The kinds that read a value where it is kept. */
const KEPT_KINDS = [
  'vault_kv',
  'aws_secrets_manager',
  'google_secret_manager',
  'onepassword_connect',
  'doppler',
  'infisical',
] as const;

/** The kinds of sources that mint the value of a secret, or read it where it is kept. A secret without a source has a stored value. */
export const SOURCE_KINDS = [
  'client_credentials',
  'jwt_bearer',
  'token_exchange',
  'google_service_account',
  'github_app',
  'aws_assume_role',
  'aws_web_identity',
  'vault_lease',
  ...KEPT_KINDS,
] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

const KEPT: ReadonlySet<string> = new Set(KEPT_KINDS);

/** Whether a source reads a value that is kept somewhere, rather than have one minted. */
export function isKept(kind: string): boolean {
  return KEPT.has(kind);
}

/** The kind of a secret whose value a program on the developer's machine gives. The control plane has no value, and no way to one. */
export const BORROWED_KIND = 'borrowed';

/**
 * Whether a mint gives a key set of AWS: a secret access key with its access key id and session token. The three are one value, so
 * that nobody combines those of two mints.
 */
export function mintsKeySet(kind: string): boolean {
  return kind === 'aws_assume_role' || kind === 'aws_web_identity';
}

/** The `access_key_id` of a `sigv4-resign` binding whose credential is a key set: each mint has an id of its own. */
export const MINTED_KEY_ID = 'minted';

/** Why a key set cannot be used as one value. */
export function keySetProblem(reference: string): string {
  return `${reference} is a key set of AWS: only a binding with the scheme "sigv4-resign" and access_key_id "${MINTED_KEY_ID}" can use it`;
}

/** A path whose value may be minted: one at which a person may store a secret, or a credential of an MCP server. */
export function parseSourcePath(text: string): Result<string, Problem<VaultPathProblemReason>> {
  return findServerCredential(text) === null ? parseOwnVaultPath(text) : parseVaultPath(text);
}

/** The credential of an MCP server at a path, if a person may give it a value: null for the access token of a sign-in. */
export function findServerCredential(path: string): ReturnType<typeof mcpCredentialAt> {
  const credential = mcpCredentialAt(path);
  return credential !== null && MCP_CREDENTIAL_NAME.test(credential.name) ? credential : null;
}
