import { text } from 'node:stream/consumers';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { UPSTREAM_HOST } from '../runtimes/connector_samples.ts';
import { type LibsqlCluster, startLibsqlCluster } from '../runtimes/libsql_cluster.ts';
import { databaseSettings } from '../runtimes/programs.ts';
import {
  OPENID_CLIENT_ID,
  OPENID_CLIENT_SECRET,
  type OpenIdProvider,
  startOpenIdProvider,
} from '../sign_in/openid_provider.ts';
import { startCompanyProxy } from '../support/company_proxy.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsFront } from '../support/tls_front.ts';
import type { Sites } from '../team/team_runtimes.ts';

/** The name of the installation. Nothing resolves it: callers send it as the TLS proxy in front of the workers does. */
export const HOST = 'control.example.test';
export const ORIGIN = `https://${HOST}`;
const OPENID_HOST = 'id.acme.test';
/** Receives audit events. */
export const RECEIVER_HOST = 'siem.acme.test';
const REGISTRY_HOST = 'registry.acme.test';

/** A request that came to the API of the sample connectors. */
interface SeenCall {
  readonly target: string;
  readonly authorization: string;
}

/** What the workers of one installation share: a libSQL server with a replica, a provider, an API and a registry. */
export interface HostedWorld {
  readonly cluster: LibsqlCluster;
  readonly openId: OpenIdProvider;
  readonly registry: RegistryServer;
  /** The requests that came to the API. */
  readonly seen: readonly SeenCall[];
  /** The bodies that came to the receiver of audit events and that it accepted. */
  readonly received: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
  readonly sites: Sites;
  stop(): Promise<void>;
}

export async function startHostedWorld(): Promise<HostedWorld> {
  const ca = await createTestCa();
  const names = [OPENID_HOST, REGISTRY_HOST, RECEIVER_HOST, UPSTREAM_HOST];
  const front = await startTlsFront(await ca.issue(names));
  const proxy = await startCompanyProxy({
    leadTo: (target) => (names.some((name) => target === `${name}:443`) ? front.port : null),
  });
  const openId = await startOpenIdProvider(OPENID_HOST, [`${ORIGIN}/auth/general/callback`]);
  front.route(OPENID_HOST, openId.loopback);
  const seen: SeenCall[] = [];
  front.route(UPSTREAM_HOST, (request, response) => {
    request.resume().once('end', () => {
      seen.push({ target: request.url ?? '', authorization: request.headers.authorization ?? '' });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"done":true}');
    });
  });
  const received: string[] = [];
  front.route(RECEIVER_HOST, (request, response) => {
    void text(request).then((body) => received.push(body));
    request.once('end', () => response.writeHead(204).end());
  });
  const registry = await startRegistryServer({ entries: 30 });
  front.route(REGISTRY_HOST, registry.url);
  const cluster = await startLibsqlCluster();
  const settings = {
    ...databaseSettings(cluster),
    SVC_PUBLIC_URL: ORIGIN,
    SVC_ALLOWED_HOSTS: HOST,
    SVC_REGISTRY_URL: `https://${REGISTRY_HOST}`,
    GENERAL_OAUTH_ISSUER: openId.origin,
    GENERAL_OAUTH_CLIENT_ID: OPENID_CLIENT_ID,
    GENERAL_OAUTH_CLIENT_SECRET: OPENID_CLIENT_SECRET,
  };
  const sites = { names, port: front.port, ca: ca.pem, caFile: ca.file, proxyUrl: proxy.url };
  const stop = async () => {
    await cluster.stop();
    await proxy.close();
    for (const part of [front, openId, registry]) await part.stop();
  };
  return { cluster, openId, registry, seen, received, settings, sites, stop };
}
