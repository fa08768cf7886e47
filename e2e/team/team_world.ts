import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Browser } from 'playwright-core';
import { type ProvenDomain, startProvenDomain } from '../console/proven_domain.ts';
import { startLibsqlServer } from '../runtimes/programs.ts';
import {
  OPENID_CLIENT_ID,
  OPENID_CLIENT_SECRET,
  type OpenIdProvider,
  startOpenIdProvider,
} from '../sign_in/openid_provider.ts';
import { startChromium } from '../support/chromium.ts';
import { startCompanyProxy } from '../support/company_proxy.ts';
import { createTestCa, type TestCa } from '../support/test_ca.ts';
import { startTlsFront } from '../support/tls_front.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import type { HostedProgram, StartHosted } from './team_runtimes.ts';

/** The domain of the team's addresses. */
export const DOMAIN = 'acme.test';
const OPENID_HOST = `id.${DOMAIN}`;
/** Receives the audit log. */
export const SIEM_HOST = `siem.${DOMAIN}`;
/** The API that the agents call. */
export const API_HOST = 'api.example.test';

/** An installation for a team: a control plane on a libSQL server behind TLS, a provider, a browser and an API. */
export interface TeamWorld {
  /** The control plane's origin. */
  readonly origin: string;
  readonly control: HostedProgram;
  /** The settings of the installation, as its operator has them. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where the database is. */
  readonly databaseFolder: string;
  readonly ca: TestCa;
  readonly chromium: Browser;
  readonly openId: OpenIdProvider;
  readonly domain: ProvenDomain;
  readonly upstream: TlsUpstream;
  /** All that the control plane and the provider have answered. */
  readonly replies: readonly Buffer[];
  /** What came to the receiver of the audit log. */
  readonly received: readonly string[];
  stop(): Promise<void>;
}

/** `more`: further sites of the team, with their addresses on loopback. */
export async function startTeamWorld(
  start: StartHosted,
  more: Readonly<Record<string, string>> = {},
): Promise<TeamWorld> {
  const replies: Buffer[] = [];
  const received: string[] = [];
  const ca = await createTestCa();
  const certificate = await ca.issue(['localhost', OPENID_HOST, DOMAIN, SIEM_HOST, ...Object.keys(more)]);
  const front = await startTlsFront(certificate, (bytes) => replies.push(bytes));
  const origin = `https://localhost:${front.port}`;
  const names = [OPENID_HOST, DOMAIN, SIEM_HOST, ...Object.keys(more)];
  const proxy = await startCompanyProxy({
    leadTo: (target) => (names.some((name) => target === `${name}:443`) ? front.port : null),
  });
  const openId = await startOpenIdProvider(OPENID_HOST, [`${origin}/auth/general/callback`]);
  const domain = await startProvenDomain();
  front.route(OPENID_HOST, openId.loopback);
  front.route(DOMAIN, domain.loopback);
  for (const [name, loopback] of Object.entries(more)) front.route(name, loopback);
  front.route(SIEM_HOST, (request, response) => {
    void text(request).then((body) => received.push(body));
    request.on('end', () => response.end());
  });
  const upstream = await startTlsUpstream(await ca.issue([API_HOST]));
  const database = await startLibsqlServer();
  const settings = {
    SVC_VAULT_KEY: randomBytes(32).toString('base64url'),
    SVC_DATABASE_URL: database.url,
    SVC_PUBLIC_URL: origin,
    GENERAL_OAUTH_ISSUER: openId.origin,
    GENERAL_OAUTH_CLIENT_ID: OPENID_CLIENT_ID,
    GENERAL_OAUTH_CLIENT_SECRET: OPENID_CLIENT_SECRET,
  };
  const sites = { names, port: front.port, ca: ca.pem, caFile: ca.file, proxyUrl: proxy.url };
  const control = await start(settings, sites);
  front.route('localhost', control.url);
  const sitesOfPeople = [OPENID_HOST, ...Object.keys(more)].map((name) => [name, front.port] as const);
  const chromium = await startChromium({ certificate: certificate.cert, names: Object.fromEntries(sitesOfPeople) });
  const stop = async () => {
    await chromium.close();
    await control.stop();
    await database.stop();
    for (const part of [proxy, upstream]) await part.close();
    for (const part of [front, openId, domain]) await part.stop();
  };
  const databaseFolder = database.directory;
  return { origin, control, settings, databaseFolder, ca, chromium, openId, domain, upstream, replies, received, stop };
}
