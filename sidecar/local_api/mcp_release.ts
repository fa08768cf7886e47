import { commandDangers, refusalOf } from '../../shared/mcp/command_dangers.ts';
import { referencesOf } from '../../shared/mcp/references.ts';
import type { Owner } from '../../shared/model/host_binding.ts';
import { mcpOAuthRef } from '../../shared/model/mcp_server.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { keySetProblem } from '../../shared/model/source_kind.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { z } from 'zod';
import type { KnownServer } from '../mcp/server_directory.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { auditUnavailableError, localError, type LocalError } from './local_error.ts';
import type { McpOptions } from './mcp_options.ts';
import type { ReleaseInput, releaseReply } from '../../shared/wire/mcp/mcp_gateway.ts';

type Released = z.output<typeof releaseReply>;

/**
 * Releases the values that a server is about to be started with: only for the configuration in force now and, if it runs a
 * program here, only for the configuration that was consented to on this machine. So neither a changed configuration nor a
 * gateway with an outdated one, or with another URL, gets a value.
 */
export async function releaseValues(
  mcp: McpOptions,
  audit: LocalApiOptions['audit'],
  serverId: string,
  wanted: ReleaseInput,
): Promise<Result<Released, LocalError>> {
  const known = findLaunchable(mcp, serverId, wanted);
  if (!known.ok) return known;
  if (!audit.accepting) return err(auditUnavailableError());
  const { server, authorization } = known.value;
  const values = await valuesOf(mcp, server.owner, referencesOf(server));
  if (!values.ok) return values;
  const bearer = authorization === null ? ok(null) : await bearerOf(mcp, known.value);
  if (!bearer.ok) return bearer;
  // The configuration may have changed, or its consent may have been withdrawn, in the meantime.
  const still = findLaunchable(mcp, serverId, wanted);
  if (!still.ok) return still;
  if (still.value.server.revision !== server.revision) return err(changedError(server.name));
  return ok({ ...values.value, bearer: bearer.value });
}

/** The server, if it may be started in the configuration that the caller has. */
function findLaunchable(
  { directory }: McpOptions,
  serverId: string,
  wanted: ReleaseInput,
): Result<KnownServer, LocalError> {
  const known = directory.find(serverId);
  if (known === null) return err(noServerError(serverId));
  const { server, consent, missing } = known;
  if (!server.enabled) {
    const why = server.ruleProblem === undefined ? '.' : `: ${server.ruleProblem}.`;
    return err(localError('mcp_server_disabled', `The server ${server.name} is disabled${why}`));
  }
  const danger = server.mode === 'local' ? refusalOf(commandDangers(server.command, server.env)) : null;
  if (danger !== null) return err(localError('command_refused', `The server ${server.name} ${danger.message}.`));
  if (known.consentHash !== wanted.consent_hash || server.url !== wanted.url) return err(changedError(server.name));
  if (consent === 'needed') return err(consentNeeded(server.name));
  if (missing.length > 0) return err(credentialMissing(server.name, missing));
  return ok(known);
}

async function valuesOf(
  { credentials }: McpOptions,
  owner: Owner,
  paths: readonly string[],
): Promise<Result<Pick<Released, 'values' | 'ends_at'>, LocalError>> {
  const resolved = await Promise.all(paths.map(async (path) => credentials.resolve({ owner, path })));
  const values: Record<string, string> = {};
  let end = Number.POSITIVE_INFINITY;
  for (const [index, value] of resolved.entries()) {
    if (!value.ok) return err(notReleasedError(value.error));
    const path = paths[index] ?? '';
    if (value.value.signedAs !== undefined) {
      return err(localError('credential_unavailable', `${keySetProblem(formatVaultReference(path))}.`));
    }
    values[path] = value.value.secret.reveal();
    end = Math.min(end, value.value.expiresAt ?? Number.POSITIVE_INFINITY);
  }
  return ok({ values, ends_at: Number.isFinite(end) ? end : null });
}

async function bearerOf(
  { credentials }: McpOptions,
  { server, authorization }: KnownServer,
): Promise<Result<Released['bearer'], LocalError>> {
  if (authorization !== 'ready') return err(authorisationNeeded(server.name));
  const token = await credentials.resolve(mcpOAuthRef(server));
  if (token.ok) return ok({ token: token.value.secret.reveal(), expires_at: token.value.expiresAt ?? null });
  if (token.error.reason === 'reauthorisation_required') return err(authorisationNeeded(server.name));
  return err(notReleasedError(token.error));
}

function notReleasedError({ reason, message }: Refusal): LocalError {
  return localError(reason, message);
}

export function noServerError(serverId: string): LocalError {
  return localError('not_found', `This machine has no MCP server ${JSON.stringify(serverId.slice(0, 64))}.`);
}

function changedError(name: string): LocalError {
  return localError(
    'consent_needed',
    `The server ${name} has changed in the meantime: look at its present configuration.`,
  );
}

function consentNeeded(name: string): LocalError {
  const message = `Nobody on this machine has consented to what the server ${name} runs now. Look at it with: svc mcp consent ${name}`;
  return localError('consent_needed', message);
}

function credentialMissing(name: string, missing: readonly string[]): LocalError {
  const names = missing.map((path) => path.slice(path.lastIndexOf('/') + 1));
  const message = `The server ${name} refers to credentials that are not stored: ${names.join(', ')}. Store each with: svc mcp credential set ${name} NAME`;
  return localError('credential_missing', message, { missing });
}

function authorisationNeeded(name: string): LocalError {
  return localError('authorisation_needed', `Sign in to the server ${name} with: svc mcp authorize ${name}`);
}
