import { createHash } from 'node:crypto';
import { exportJWK, generateKeyPair } from 'jose';
import { z } from 'zod';
import { createdToken } from '../../shared/wire/tokens.ts';
import { HOSTILE_ENTRY, WEATHER, WEATHER_VERSIONS } from '../console/marketplace_entries.ts';
import { OAUTH_SPEC } from '../console/console_seeds.ts';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import type { TestSidecar } from '../runtimes/sidecar_client.ts';
import { plantSecret } from '../support/planted_secret.ts';
import type { Svc } from '../support/svc.ts';

export const STORED = 'stored.example.test';
const MANY = 60;
/** On the last of {@link PAGED}. */
export const LAST = 'user/zz-last';
/** The secret that is not deleted, because nobody confirms it. */
export const DELETED = 'user/many-1';
/** A list with several pages. */
const PAGED = '/v1/secrets?limit=20';

const withId = z.object({ id: z.string() });
const withSigningSecret = z.object({ signing_secret: z.string() });

/** The registry that has what {@link Planter} installs. */
export async function startPlantedRegistry(): Promise<RegistryServer> {
  const registry = await startRegistryServer({ entries: MANY });
  for (const entry of [...WEATHER_VERSIONS, HOSTILE_ENTRY]) registry.publish(entry);
  return registry;
}

/** One of each thing that has an answer of its own, each with a value of its own, and the paths that lead to what no list has. */
export class Planter {
  /** What svc stores or has shown once. */
  readonly secrets: string[] = [];
  readonly more: string[] = [PAGED, '/audit/retention/remove?before=2020-01-01'];
  /** The stored value of {@link LAST}, which a sidecar may have. */
  readonly stored = this.#value();
  /** In descriptions, where svc shows it. */
  readonly shown = plantSecret();
  readonly #svc: Pick<Svc, 'api'>;
  readonly #sidecar: TestSidecar;

  /** `svc` is called as the person who owns all this, and `sidecar` is that person's. */
  constructor(svc: Pick<Svc, 'api'>, sidecar: TestSidecar) {
    this.#svc = svc;
    this.#sidecar = sidecar;
  }

  async plant(): Promise<void> {
    for (let number = 0; number < MANY; number += 1) await this.#storeAt(`user/many-${number}`);
    await this.#storeAt(LAST);
    const binding = { host: STORED, scheme: 'bearer', credential_ref: `vault://${LAST}`, description: this.shown };
    await this.#make('/v1/host-bindings', binding);
    const itemsId = await this.#plantConnectors();
    await this.#plantMcpServers();
    await this.#plantSinksAndTokens();
    await this.#plantServiceAccount();
    await this.#askApprovals(itemsId);
    await this.#make('/v1/tunnel-hosts', { host: 'pinned.example.test' });
    await this.#make('/v1/client-certificates', { host: 'mtls.example.test', credential_ref: 'vault://user/pem' });
    await this.#make('/v1/groups', { name: 'a group' });
    await this.#make('/v1/approval-rules', { subject: 'connector', name: 'elsewhere/*', role: 'owner' });
    const login = { program: 'claude', token_url: 'https://auth.example.test/token', client_id: 'x' };
    const loginId = await this.#make('/v1/pending-logins', { ...login, grants: ['device_code'] });
    this.more.push(`/v1/pending-logins/${loginId}`, `/v1/sidecar/pending-logins/${loginId}`);
    this.more.push(`/secrets/delete?path=${DELETED}&owner=personal`);
  }

  #value(): string {
    const value = plantSecret();
    this.secrets.push(value);
    return value;
  }

  async #change(method: string, path: string, body: unknown): Promise<unknown> {
    const reply = await this.#svc.api(method, path, body);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body;
  }

  async #storeAt(path: string): Promise<void> {
    await this.#change('POST', '/v1/secrets', { path, value: this.stored });
  }

  async #make(path: string, body: unknown): Promise<string> {
    return withId.parse(await this.#change('POST', path, body)).id;
  }

  async #plantConnectors(): Promise<string> {
    const itemsId = await this.#make('/v1/connectors', ITEMS_SPEC);
    const key = { kind: 'api_key', value: this.#value() };
    await this.#change('PUT', `/v1/connectors/${itemsId}/credential`, key);
    const calendarId = await this.#make('/v1/connectors', OAUTH_SPEC);
    const client = { kind: 'oauth2', client_id: 'client-of-a-test', client_secret: this.#value() };
    await this.#change('PUT', `/v1/connectors/${calendarId}/credential`, client);
    return itemsId;
  }

  async #plantMcpServers(): Promise<void> {
    const entry = encodeURIComponent(WEATHER);
    const install = { name: 'weather', version: '1.2.2', package: 0, inputs: { region: 'eu', UNIT: 'celsius' } };
    await this.#change('POST', `/v1/marketplace/servers/${entry}/install`, install);
    const { body } = await this.#svc.api('GET', '/v1/mcp-servers');
    const weatherId = z.object({ items: z.array(withId) }).parse(body).items[0]?.id ?? '';
    const key = { env_var_name: 'API_KEY', secret_value: this.#value() };
    await this.#change('POST', `/v1/mcp-servers/${weatherId}/credentials`, key);
    const tool = { name: 'now', description: this.shown, inputSchema: { type: 'object' } };
    for (const tools of [[tool], [tool, { ...tool, name: 'new' }]]) {
      await this.#sidecar.call('POST', '/v1/sidecar/mcp-tools', { body: { server_id: weatherId, tools } });
    }
    const remote = { name: 'remote', mode: 'remote', url: 'https://mcp.example.test/mcp' };
    const remoteId = await this.#make('/v1/mcp-servers', remote);
    await this.#change('PUT', `/v1/mcp-servers/${remoteId}`, { ...remote, url: 'https://mcp.example.test/changed' });
    this.more.push(
      `/v1/marketplace/servers/${entry}`,
      `/mcp-servers/install?registry_id=${entry}&version=1.2.2&step=settings`,
      `/mcp-servers/${remoteId}/rollback?revision=1`,
    );
  }

  /** With what is shown only once, when it is made. */
  async #plantSinksAndTokens(): Promise<void> {
    const webhook = { kind: 'webhook', name: 'siem', url: 'https://siem.example.test/in' };
    const made = await this.#change('POST', '/v1/audit-sinks', webhook);
    this.secrets.push(withSigningSecret.parse(made).signing_secret);
    const header = { name: 'authorization', value: this.#value() };
    const collector = { kind: 'otlp', name: 'otel', url: 'https://otel.example.test/v1/logs' };
    await this.#make('/v1/audit-sinks', { ...collector, header });
    const bucket = { kind: 's3', name: 'archive', url: 'https://s3.example.test/bucket', region: 'eu-central-1' };
    const keys = { access_key_id: 'AKIAEXAMPLE', secret_access_key: this.#value() };
    await this.#make('/v1/audit-sinks', { ...bucket, ...keys });
    const token = await this.#change('POST', '/v1/tokens', { name: 'ci', scopes: ['secrets:read'] });
    this.secrets.push(createdToken.parse(token).token);
  }

  async #plantServiceAccount(): Promise<void> {
    const job = { name: 'job', issuer: 'https://id.example.test', audience: 'svc', claims: { sub: 'job' } };
    const account = `/v1/service-accounts/${await this.#make('/v1/service-accounts', job)}`;
    await this.#make(`${account}/secrets`, { path: 'job/key', value: this.#value() });
    const binding = { host: 'job.example.test', scheme: 'bearer', credential_ref: 'vault://job/key' };
    await this.#make(`${account}/host-bindings`, binding);
  }

  /** One that is granted, and one that waits and that a page wants to see. */
  async #askApprovals(connectorId: string): Promise<void> {
    const granted = await askApproval(this.#sidecar, connectorId, '41');
    const decision = { decision: 'approve', grant: { seconds: 3600 } };
    await this.#change('POST', `/v1/approvals/${granted}/decide`, decision);
    const asked = await askApproval(this.#sidecar, connectorId, '42');
    const { publicKey } = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
    const viewId = await this.#make(`/v1/approvals/${asked}/views`, { key: await exportJWK(publicKey) });
    this.more.push(
      `/v1/approvals/${asked}/views/${viewId}`,
      `/v1/sidecar/approvals/${asked}?wait=0&request_id=${crypto.randomUUID()}`,
    );
  }
}

/** A request that waits for an approval. */
async function askApproval(sidecar: TestSidecar, connectorId: string, item: string): Promise<string> {
  const summary = `Items: delete item ${item}`;
  const digest = createHash('sha256').update(summary).digest('hex');
  const session = { session_id: 'ses_demo', session_name: 'claude', folder: '/home/ann/shop' };
  const request = { request_id: crypto.randomUUID(), connector_id: connectorId, operation: 'delete-item' };
  const body = { ...request, fingerprint: digest, scope: digest, summary, ...session };
  const reply = await sidecar.call('POST', '/v1/sidecar/approvals', { body });
  const [, payload = ''] = (await reply.text()).split('.');
  return z.object({ approval_id: z.string() }).parse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
    .approval_id;
}
