import { randomBytes } from 'node:crypto';
import { connectorSpec, type ConnectorSpecInput } from '../../shared/wire/connectors/connector_spec.ts';
import { connectorVaultPath } from '../../shared/model/connector.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import {
  connectorCredentialRecord,
  type ConnectorSummary,
  installReply,
  type InstallReply,
} from '../../shared/wire/connectors/connectors.ts';
import { type PendingLogin, pendingLogin, storeLoginReply } from '../../shared/wire/pending_logins.ts';
import { hostBindingInput, type HostBindingRecord, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { listAllConnectors } from '../connectors/connector_lookup.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { carryOutSeal } from '../seal/seal_service.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { AgentAccount, AgentProfile } from './agent_profile.ts';
import type { FoundLogin } from './login_formats.ts';
import { makePlaceholder } from './placeholder_shape.ts';

/** The connector that keeps the login of an agent. */
function loginConnector(profile: AgentProfile): string {
  return `login/${profile.name}`;
}

/** `vault://connectors/login/NAME`. */
export function accountReference(profile: AgentProfile): string {
  return formatVaultReference(connectorVaultPath(loginConnector(profile)));
}

/** The spec of that connector: one operation, which is the request for tokens. */
function loginSpec(profile: AgentProfile, account: AgentAccount): ConnectorSpecInput {
  const { host, pathname } = new URL(account.token_url);
  return connectorSpec.parse({
    schema_version: 1,
    connector: {
      fqn: loginConnector(profile),
      version: '1.2.0',
      title: `Login of ${profile.title}`,
      description: `Keeps the tokens of ${profile.title}. ${profile.title} holds placeholders.`,
    },
    hosts: [host],
    credential: {
      kind: 'oauth2',
      token_url: account.token_url,
      ...(account.revocation_url !== undefined && { revocation_url: account.revocation_url }),
      login: {
        client_id: account.client_id,
        token_request: account.token_request,
        hosts: account.hosts,
        paths: account.paths,
      },
    },
    operations: [
      { name: 'token', method: 'POST', path: pathname, summary: 'Request tokens; svc answers it', effect: 'write' },
    ],
  });
}

/** The placeholder of an agent's own login, if each of its hosts is bound with it; null if not. */
export function accountPlaceholder(profile: AgentProfile, bindings: readonly HostBindingRecord[]): string | null {
  const { account } = profile;
  if (account === undefined) return null;
  const own = accountBindings(profile, bindings);
  const value = own[0]?.sentinel?.value ?? null;
  const isBound = (host: string): boolean =>
    own.some((record) => record.host === host && record.sentinel?.value === value);
  return value !== null && account.hosts.every((host) => isBound(host)) ? value : null;
}

/** The caller's own bindings of this login; not those of the enterprise, which have another connector. */
export function accountBindings(
  profile: AgentProfile,
  bindings: readonly HostBindingRecord[],
): readonly HostBindingRecord[] {
  const reference = accountReference(profile);
  return bindings.filter((record) => record.owner === 'personal' && record.credential_ref === reference);
}

/** The caller's connector of this login, if it is installed. */
export async function findAccount(client: HttpClient, profile: AgentProfile): Promise<ConnectorSummary | null> {
  const all = await listAllConnectors(client, 'personal');
  return all.find(({ fqn }) => fqn === loginConnector(profile)) ?? null;
}

/** Installs the connector. No token is needed, and none is moved. */
export function installAccount(
  client: HttpClient,
  profile: AgentProfile,
  account: AgentAccount,
): Promise<InstallReply> {
  const body = loginSpec(profile, account);
  return client.call('POST', '/v1/connectors', installReply, { body, query: { owner: 'personal' } });
}

/** The placeholder that the login is bound with, or a new one. */
export function choosePlaceholder(account: AgentAccount, known: readonly HostBindingRecord[]): string {
  return known[0]?.sentinel?.value ?? makePlaceholder(account.placeholder, randomBytes);
}

/** Binds the hosts that are not bound. From then on the placeholder stands for the access token. */
export async function bindAccount(
  client: HttpClient,
  profile: AgentProfile,
  hosts: readonly string[],
  placeholder: string,
): Promise<void> {
  const steps = hosts.map((host) => ({ kind: 'create' as const, binding: accountBinding(profile, host, placeholder) }));
  await carryOutSeal(client, steps, null);
}

/** Deletes the bindings, so that nobody can use the tokens or have them refreshed. */
export async function unbindAccount(client: HttpClient, known: readonly HostBindingRecord[]): Promise<void> {
  for (const { id } of known) await client.callEmpty('DELETE', `/v1/host-bindings/${id}`);
}

function accountBinding(profile: AgentProfile, host: string, placeholder: string): ValidHostBinding {
  return hostBindingInput.parse({
    host,
    scheme: 'bearer',
    credential_ref: accountReference(profile),
    emit_mechanism: 'sentinel-swap',
    sentinel: { value: placeholder },
    body: 'stream',
    description: profile.title,
  });
}

/** Stores the tokens. From then on the control plane refreshes them. */
export async function storeAccount(
  client: HttpClient,
  { client_id }: AgentAccount,
  connector: InstallReply,
  found: FoundLogin,
): Promise<void> {
  await client.call('PUT', `/v1/connectors/${connector.id}/credential`, connectorCredentialRecord, {
    body: {
      kind: 'oauth2',
      client_id,
      content_hash: connector.content_hash,
      access_token: found.accessToken.reveal(),
      refresh_token: found.refreshToken.reveal(),
      ...(found.expiresAt !== null && { expires_at: new Date(found.expiresAt).toISOString() }),
    },
  });
}

/** A login that is open, and whether the control plane has its tokens revoked if nobody keeps them. */
interface OpenedLogin {
  readonly login: PendingLogin;
  readonly isRevocable: boolean;
}

/** Opens a new login: from now on a session of it may capture its tokens. */
export async function openLogin(
  client: HttpClient,
  profile: AgentProfile,
  { token_url, client_id, grants, revocation_url, token_request }: AgentAccount,
): Promise<OpenedLogin> {
  const facts = { program: profile.name, token_url, client_id, grants };
  const open = (more: object): Promise<PendingLogin> =>
    client.call('POST', '/v1/pending-logins', pendingLogin, { body: { ...facts, ...more } });
  if (revocation_url === undefined) return { login: await open({}), isRevocable: false };
  try {
    return { login: await open({ revocation_url, token_request }), isRevocable: true };
  } catch (error) {
    // A control plane of an earlier version refuses fields that it does not know, and revokes nothing.
    if (!(error instanceof CliError) || error.apiCode !== 'invalid_input') throw error;
    return { login: await open({}), isRevocable: false };
  }
}

/** The login with the account that the provider named. */
export function showLogin(client: HttpClient, { id }: PendingLogin): Promise<PendingLogin> {
  return client.call('GET', `/v1/pending-logins/${id}`, pendingLogin);
}

/** Stores the tokens of a new login. From then on the control plane refreshes them. */
export async function storeLoginTokens(
  client: HttpClient,
  { id }: PendingLogin,
  connector: InstallReply,
): Promise<void> {
  await client.call('POST', `/v1/pending-logins/${id}/store`, storeLoginReply, {
    body: { connector_id: connector.id, content_hash: connector.content_hash },
  });
}

/** Deletes a login that waits, with its tokens. One that is gone already is no error. */
export async function discardLogin(client: HttpClient, { id }: PendingLogin): Promise<void> {
  try {
    await client.callEmpty('DELETE', `/v1/pending-logins/${id}`);
  } catch (error) {
    if (!(error instanceof CliError) || error.apiCode !== 'not_found') throw error;
  }
}

/** Takes the tokens back out of svc, so that nobody but the agent refreshes them. False if that may not have happened. */
export async function forgetAccount(client: HttpClient, connector: InstallReply): Promise<boolean> {
  try {
    await client.callEmpty('DELETE', `/v1/connectors/${connector.id}/credential`);
    return true;
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return error.apiCode === 'not_found';
  }
}

/** The part of a profile that a login needs. */
export function accountOf(profile: AgentProfile): AgentAccount {
  if (profile.account !== undefined) return profile.account;
  throw new CliError(EXIT.usage, `svc does not know the own login of ${profile.title}`, [
    `Store a key: svc login ${profile.name}`,
  ]);
}
