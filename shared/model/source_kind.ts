import { MCP_CREDENTIAL_NAME, mcpCredentialAt } from './mcp_server.ts';
import type { Problem } from './problem.ts';
import type { Result } from './result.ts';
import { parseOwnVaultPath, parseVaultPath, type VaultPathProblemReason } from './vault_path.ts';

/** The kind of a secret whose value a program on the developer's machine gives. The control plane has no value, and no way to one. */
export const BORROWED_KIND = 'borrowed';

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
