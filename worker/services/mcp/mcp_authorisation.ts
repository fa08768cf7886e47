import { MCP_OAUTH_NAME } from '../../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { McpAuthorizeReply, ValidMcpAuthorization } from '../../../shared/wire/mcp/mcp_authorization.ts';
import {
  deleteMcpAuthorization,
  findMcpAuthorization,
  putMcpAuthorization,
  setMcpClient,
} from '../../store/mcp/mcp_authorizations.ts';
import { isStill, type McpServerRow } from '../../store/mcp/mcp_servers.ts';
import type { Caller } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { discoverAuthorization, type McpAuthorizationServer, type ServerMetadata } from './mcp_oauth_discovery.ts';
import { registerClient } from './mcp_oauth_registration.ts';
import { invalidFields } from './mcp_server_checks.ts';
import { configurationOf } from './mcp_configuration.ts';
import { change, revocationOf, writableMcpServer } from './mcp_servers.ts';
import { beginBrowser, CALLBACK_PATH, type RedirectOrigin } from '../oauth/oauth_authorisation.ts';
import { readClientKey } from '../oauth/client_key.ts';
import { type OAuthBundle, writeBundle } from '../oauth/oauth_bundle.ts';
import type { OAuthClient } from '../oauth/oauth_client.ts';
import { mcpSubject } from '../oauth/oauth_subject.ts';
import { type HeldCredential, readHeld } from '../oauth/oauth_tokens.ts';
import { type Changed, controlChain, commitPolicy } from '../../kernel/policy_change.ts';
import { timeOfChange, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { vaultWrite } from '../vault/vault_write.ts';

/**
 * Starts the authorisation of a remote server: discovers its authorization server, chooses a client (the one in the
 * request, the stored one or a newly registered one), and returns a link for a browser. If the client stays the same,
 * its tokens stay until new ones are stored. `origin` is that of the redirect URL. Refuses with `not_found`,
 * `admin_required`, `invalid_input`, `authorization_server_unconfirmed`, `oauth_provider_failed`.
 */
export async function beginMcpAuthorisation(
  context: ServiceContext,
  caller: Caller,
  id: string,
  how: RedirectOrigin & { readonly input: ValidMcpAuthorization },
): Promise<Result<McpAuthorizeReply, ApiError>> {
  const row = await writableMcpServer(context, caller, id);
  if (!row.ok) return row;
  const { url } = configurationOf(row.value);
  if (url === null)
    return err(apiError('invalid_input', `${row.value.name} is a local server: only remote servers have a sign-in`));
  const way = { outbound: context.outbound, isLocal: context.local !== null, now: () => context.clock.now() };
  const found = await discoverAuthorization(way, url);
  if (!found.ok) return err(failedError(row.value, found.error));
  const unconfirmed = hostsProblem(row.value, url, found.value, how.input);
  if (unconfirmed !== null) return err(unconfirmed);
  const client = await chooseClient(context, row.value, found.value, how);
  if (!client.ok) return client;
  const held = await holdClient(context, caller, row.value, client.value);
  if (!held.ok) return held;
  const { authorization_endpoint: authorizationUrl, issuer } = found.value.metadata;
  const link = await beginBrowser(context, caller, held.value, authorizationUrl, how);
  const { authorization_url, redirect_uri, expires_at } = link;
  return ok({ authorization_url, redirect_uri, expires_at, authorization_server: issuer });
}

/** Says which hosts of the sign-in the person has not confirmed yet; null if there are none. */
function hostsProblem(
  { name }: McpServerRow,
  url: string,
  { otherHosts: hosts, metadata }: McpAuthorizationServer,
  { authorization_hosts: agreed = [] }: ValidMcpAuthorization,
): ApiError | null {
  if (hosts.every((host) => agreed.includes(host))) return null;
  const asked = new URL(metadata.authorization_endpoint).host;
  const message =
    `${name} is at ${new URL(url).host}, and its sign-in uses ${asked}; hosts other than the server's own: ${hosts.join(', ')}. ` +
    'This server will get the access that you grant there: continue only if its users are meant to sign in there';
  return apiError('authorization_server_unconfirmed', message, { authorization_server: metadata.issuer, hosts });
}

/** A client with what it proves itself by; with neither it is a public one. */
interface ChosenClient extends Pick<OAuthBundle, 'clientSecret' | 'clientKey'> {
  readonly client: OAuthClient;
  /** Replaces the stored client, even if only its secret or its key differs. */
  readonly isNew: boolean;
}

async function chooseClient(
  context: ServiceContext,
  row: McpServerRow,
  found: McpAuthorizationServer,
  { input, origin }: { readonly input: ValidMcpAuthorization; readonly origin: string },
): Promise<Result<ChosenClient, ApiError>> {
  const redirectUri = origin + CALLBACK_PATH;
  const held = await readHeld(context, row.id);
  const granted = held.ok && held.value.client.issuer === found.metadata.issuer ? held.value.client.scopes : null;
  const fields = issuerFields(found, input, granted);
  if (input.client_id !== undefined) {
    const { client_id, client_authentication, client_secret: text } = input;
    const client = { client_id, client_authentication, ...fields };
    const given = text === undefined ? null : new Secret(text);
    if (client_authentication !== 'private_key_jwt') return ok({ client, clientSecret: given, isNew: true });
    if (given === null || (await readClientKey(given)) === null) return err(keyMissing());
    return ok({ client, clientSecret: null, clientKey: given, isNew: true });
  }
  if (held.ok && fits(held.value, fields, redirectUri)) {
    const { client_id, client_authentication, registered_for } = held.value.client;
    const client = {
      client_id,
      client_authentication,
      ...fields,
      ...(registered_for !== undefined && { registered_for }),
    };
    const { clientSecret, clientKey = null } = held.value.bundle;
    return ok({ client, clientSecret, clientKey, isNew: false });
  }
  const { registration_endpoint: endpoint, issuer, client_id_metadata_document_supported: takesUrls } = found.metadata;
  if (takesUrls === true && context.mcpClientUrl !== null) {
    const client = { client_id: context.mcpClientUrl, client_authentication: 'post' as const, ...fields };
    return ok({ client: { ...client, registered_for: redirectUri }, clientSecret: null, isNew: false });
  }
  if (endpoint === undefined) return err(clientMissing(issuer, redirectUri));
  const metadata = { ...found.metadata, registration_endpoint: endpoint };
  const made = await registerClient(context.outbound, metadata, redirectUri);
  if (!made.ok) return err(failedError(row, made.error));
  const { clientId: client_id, clientSecret, clientKey, clientAuthentication: client_authentication } = made.value;
  const client = { client_id, client_authentication, ...fields, registered_for: redirectUri };
  return ok({ client, clientSecret, clientKey, isNew: true });
}

type IssuerFields = Omit<OAuthClient, 'client_id' | 'client_authentication' | 'registered_for'>;

function issuerFields(
  { resource, scopes, metadata }: McpAuthorizationServer,
  input: ValidMcpAuthorization,
  granted: readonly string[] | null,
): IssuerFields {
  const { add_scopes: added = null } = input;
  const chosen = input.scopes ?? (added === null ? null : granted);
  // Without this scope many servers issue no refresh token.
  const isOffline = chosen === null && metadata.scopes_supported?.includes('offline_access') === true;
  return {
    authorization_url: metadata.authorization_endpoint,
    token_url: metadata.token_endpoint,
    device_authorization_url: null,
    ...revocationField(metadata),
    scopes: [...new Set([...(chosen ?? scopes), ...(isOffline ? ['offline_access'] : []), ...(added ?? [])])],
    resource,
    issuer: metadata.issuer,
    names_itself: metadata.authorization_response_iss_parameter_supported ?? false,
  };
}

/** A token is sent to no other server than the one that issued it. */
function revocationField({ revocation_endpoint: url, token_endpoint: token }: ServerMetadata): Partial<IssuerFields> {
  return url !== undefined && new URL(url).origin === new URL(token).origin ? { revocation_url: url } : {};
}

/**
 * A client is sent only to the authorization server that issued it; a registered one only with its own redirect URL. One that signs
 * is of no use without its key, which an earlier worker does not keep when it renews the tokens.
 */
function fits({ client, bundle }: HeldCredential, fields: IssuerFields, redirectUri: string): boolean {
  const isSameServer = client.issuer === fields.issuer && client.token_url === fields.token_url;
  const maySign = client.client_authentication !== 'private_key_jwt' || (bundle.clientKey ?? null) !== null;
  return isSameServer && maySign && (client.registered_for ?? redirectUri) === redirectUri;
}

/** The credential with this client: unchanged if it has this client, otherwise a new one without tokens. */
async function holdClient(
  context: ServiceContext,
  caller: Caller,
  row: McpServerRow,
  { client, clientSecret, clientKey = null, isNew }: ChosenClient,
): Promise<Result<HeldCredential, ApiError>> {
  const text = JSON.stringify(client);
  const subject = mcpSubject(row);
  const stored = await commit(context, controlChain(caller), async () => {
    const now = await findMcpAuthorization(context.database, row.id);
    const before = now?.credential?.client ?? null;
    if (!isNew && before === text) return ok({ statements: [], events: [], value: null });
    if (!isNew && before !== null && asksForOther(before, client)) {
      // Its tokens stay until the person has agreed to the other scopes.
      const statements = setMcpClient(context.database, row.id, { before, client: text });
      return ok({ statements, events: [], value: null });
    }
    const time = nowText(context);
    const credential = {
      connectorId: row.id,
      ownerId: row.ownerId,
      path: subject.path,
      kind: 'oauth2' as const,
      state: 'authorisation_required' as const,
      client: text,
      expiresAt: null,
      renewable: false,
      lease: null,
      leaseUntil: null,
      updatedAt: timeOfChange(time, now?.credential?.updatedAt ?? ''),
    };
    const bundle = writeBundle({ clientSecret, clientKey, accessToken: null, refreshToken: null });
    const write = [
      ...isStill(row.id, row.revision),
      ...(await vaultWrite(context, subject, bundle)),
      ...putMcpAuthorization(context.database, credential),
    ];
    const type = 'control.mcp_server.credential_stored' as const;
    return ok(change(context, caller, { type, row, write, value: null, credential: MCP_OAUTH_NAME }));
  });
  return stored.ok ? readHeld(context, row.id) : stored;
}

/** Whether the clients differ in their scopes and in nothing else. */
function asksForOther(stored: string, client: OAuthClient): boolean {
  const before: OAuthClient = JSON.parse(stored);
  return JSON.stringify({ ...before, scopes: [] }) === JSON.stringify({ ...client, scopes: [] });
}

/** Deletes the authorisation of a server, if it has one, and has its tokens revoked. Refuses with `not_found`, `admin_required`. */
export async function removeMcpAuthorisation(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await writableMcpServer(context, caller, id);
    if (!row.ok) return row;
    const found = await findMcpAuthorization(context.database, id);
    if ((found?.credential ?? null) === null) return ok({ statements: [], events: [], value: null });
    const write = deleteMcpAuthorization(context.database, row.value);
    const type = 'control.mcp_server.credential_deleted' as const;
    const made = change(context, caller, { type, row: row.value, write, value: null, credential: MCP_OAUTH_NAME });
    return ok({ ...made, afterwards: await revocationOf(context, caller, row.value) });
  });
}

function clientMissing(issuer: string, redirectUri: string): ApiError {
  const message = `is missing: ${new URL(issuer).hostname} does not register clients automatically; register one there with the redirect URL ${redirectUri}`;
  return invalidFields([{ field: 'client_id', message }]);
}

function keyMissing(): ApiError {
  const message =
    'is not the private key of the client: for private_key_jwt, give an EC key (P-256), an RSA key of 2048 to 8192 bits or an Ed25519 key in PEM, as "-----BEGIN PRIVATE KEY-----", without a passphrase';
  return invalidFields([{ field: 'client_secret', message }]);
}

function failedError({ name }: McpServerRow, why: string): ApiError {
  return apiError('oauth_provider_failed', `cannot sign in to ${name}: ${why}`);
}
