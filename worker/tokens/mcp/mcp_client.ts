import {
  type McpClientRegistered,
  type McpClientRegistration,
  MCP_SCOPE,
  REGISTERED_PREFIX,
} from '../../../shared/wire/mcp/mcp_clients.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { redirectUriProblem } from '../../../shared/net/redirect_uri.ts';
import { randomToken } from '../../kernel/encoding.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { takeClientAttempt, type Throttle } from '../../sign_in/throttle.ts';
import { findMcpClient as findClientRow, type McpClientRow, putMcpClient } from '../../store/mcp/mcp_clients.ts';
import { fetchClientDocument } from './client_document.ts';
import { oauthError, type OAuthRefusal } from './oauth_refusal.ts';

/** A client as a person decides about it. */
export interface McpClient {
  readonly id: string;
  /** Its own name for itself; empty if it gave none. */
  readonly name: string;
  readonly redirectUris: readonly string[];
  /** The host that published its document; null for a registered client, which may be anybody's. */
  readonly publisher: string | null;
}

/** Limits registrations from one network, which may be that of a company, or of a web client that registers for many people. */
const REGISTRATIONS: Throttle = { kind: 'mcp client registrations', most: 100, windowSeconds: 10 * 60 };
/** All redirect URIs of a client together. Honest ones need a few hundred; anybody may store this many. */
const MAX_REDIRECT_CHARACTERS = 4_000;
/** A client that nobody connects is deleted after this time. */
const UNUSED_SECONDS = 24 * 3600;

/**
 * Registers a client (RFC 7591). It gets an id and no secret, whatever it asked for: the redirect URI and PKCE tell who
 * redeems a code. Refuses with `invalid_redirect_uri`, `slow_down`.
 */
export async function registerMcpClient(
  context: ServiceContext,
  registration: McpClientRegistration,
  clientAddress: string | null,
): Promise<Result<McpClientRegistered, OAuthRefusal>> {
  const allowed = await takeClientAttempt(context, REGISTRATIONS, clientAddress);
  if (!allowed.ok) return err(oauthError('slow_down', allowed.error.message));
  const { redirect_uris: redirectUris, client_name: name = '' } = registration;
  const problem = redirectUrisProblem(redirectUris);
  if (problem !== null) return err(oauthError('invalid_redirect_uri', problem));
  const now = nowSeconds(context);
  const row: McpClientRow = {
    id: REGISTERED_PREFIX + randomToken(),
    kind: 'registered',
    name,
    redirectUris: JSON.stringify(redirectUris),
    createdAt: nowText(context),
    expiresAt: now + UNUSED_SECONDS,
  };
  await context.database.write(putMcpClient(context.database, row, now));
  return ok({
    client_id: row.id,
    client_id_issued_at: now,
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: MCP_SCOPE,
  });
}

/** Finds a client for a signed-in user: a registered one, or one by its document. The error is a sentence for the user. */
export async function findMcpClient(
  context: ServiceContext,
  userId: string,
  id: string,
): Promise<Result<McpClient, string>> {
  const stored = await findClientRow(context.database, id, nowSeconds(context));
  if (stored !== null) return ok(toClient(stored));
  if (!id.startsWith('https://')) return err(UNKNOWN);
  const fetched = await fetchClientDocument(context, userId, id);
  if (!fetched.ok) return fetched;
  const problem = redirectUrisProblem(JSON.parse(fetched.value.redirectUris));
  if (problem !== null) return err(`The document of this client is not valid: ${problem}.`);
  await context.database.write(putMcpClient(context.database, fetched.value, nowSeconds(context)));
  return ok(toClient(fetched.value));
}

const UNKNOWN =
  'This client is not registered here, or its registration has expired because nobody used it. Add the server in the client again.';

function redirectUrisProblem(uris: readonly string[]): string | null {
  if (uris.join('').length > MAX_REDIRECT_CHARACTERS) {
    return `redirect_uris are longer than ${MAX_REDIRECT_CHARACTERS} characters together`;
  }
  for (const [index, uri] of uris.entries()) {
    const problem = redirectUriProblem(uri);
    if (problem !== null) return `redirect_uris[${index}] ${problem}`;
  }
  return null;
}

function toClient({ id, kind, name, redirectUris }: McpClientRow): McpClient {
  const uris: string[] = JSON.parse(redirectUris);
  return { id, name, redirectUris: uris, publisher: kind === 'document' ? new URL(id).hostname : null };
}
