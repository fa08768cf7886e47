import { randomBytes } from 'node:crypto';
import { connectorSpec, type ConnectorSpecInput } from '../../shared/wire/connector_spec.ts';
import { connectorVaultPath } from '../../shared/model/connector.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { connectorCredentialRecord, installReply, type InstallReply } from '../../shared/wire/connectors.ts';
import { hostBindingInput, type HostBindingRecord, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { carryOutSeal } from '../seal/seal_service.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { AgentAccount, AgentProfile } from './agent_profile.ts';
import type { FoundLogin } from './login_formats.ts';
import { makePlaceholder } from './placeholder_shape.ts';

/** The word for `--login`. */
export const ACCOUNT = 'account';

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
      version: '1.1.0',
      title: `Login of ${profile.title}`,
      description: `Keeps the tokens of ${profile.title}. ${profile.title} holds placeholders.`,
    },
    hosts: [host],
    credential: {
      kind: 'oauth2',
      token_url: account.token_url,
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
  const own = bindings.filter((record) => record.credential_ref === accountReference(profile));
  const value = own[0]?.sentinel?.value ?? null;
  const isBound = (host: string): boolean =>
    own.some((record) => record.host === host && record.sentinel?.value === value);
  return value !== null && account.hosts.every((host) => isBound(host)) ? value : null;
}

/** An agent's own login in svc: its connector, and the placeholder that its hosts are bound with. */
export interface PreparedAccount {
  readonly connector: InstallReply;
  readonly placeholder: string;
}

/** Installs the connector and binds the hosts, keeping an earlier placeholder. No token is needed, and none is moved. */
export async function prepareAccount(
  client: HttpClient,
  profile: AgentProfile,
  account: AgentAccount,
  bindings: readonly HostBindingRecord[],
): Promise<PreparedAccount> {
  const query = { owner: 'personal' };
  const connector = await client.call('POST', '/v1/connectors', installReply, {
    body: loginSpec(profile, account),
    query,
  });
  const known = bindings.filter(
    (record) => record.owner === 'personal' && record.credential_ref === accountReference(profile),
  );
  const placeholder = known[0]?.sentinel?.value ?? makePlaceholder(account.placeholder, randomBytes);
  const missing = account.hosts.filter((host) => !known.some((record) => record.host === host));
  const steps = missing.map((host) => ({
    kind: 'create' as const,
    binding: accountBinding(profile, host, placeholder),
  }));
  await carryOutSeal(client, steps, null);
  return { connector, placeholder };
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
  { connector }: PreparedAccount,
  found: FoundLogin,
): Promise<void> {
  await client.call('PUT', `/v1/connectors/${connector.id}/credential`, connectorCredentialRecord, {
    body: {
      kind: 'oauth2',
      client_id,
      access_token: found.accessToken.reveal(),
      refresh_token: found.refreshToken.reveal(),
      ...(found.expiresAt !== null && { expires_at: new Date(found.expiresAt).toISOString() }),
    },
  });
}

/** Takes the tokens back out of svc, so that nobody but the agent refreshes them. False if that may not have happened. */
export async function forgetAccount(client: HttpClient, { connector }: PreparedAccount): Promise<boolean> {
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
