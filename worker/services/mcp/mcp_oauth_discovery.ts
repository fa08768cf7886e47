import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { bearerChallenge } from '../oauth/bearer_challenge.ts';
import { type Outbound, targetProblem } from '../../kernel/outbound.ts';
import { parseJsonBytes } from '../../../shared/model/json.ts';

/** Where a remote MCP server is signed in to, as it and its authorization server say. */
export interface McpAuthorizationServer {
  /** What tokens are asked for (RFC 8707). */
  readonly resource: string;
  /** What the server says that its clients need. */
  readonly scopes: readonly string[];
  readonly metadata: ServerMetadata;
  /** Hosts other than the server's own that a person or a code, and so a token, would go to; sorted. */
  readonly otherHosts: readonly string[];
}

const url = z
  .string()
  .max(2_000)
  .refine((text) => URL.canParse(text));
const words = z.array(z.string().max(200)).max(200);

/** Protected resource metadata (RFC 9728 section 2), as much of it as is used. */
const resourceMetadata = z.object({
  resource: url,
  authorization_servers: z.array(url).min(1).max(20).optional(),
  scopes_supported: words.optional(),
});
type ResourceMetadata = z.infer<typeof resourceMetadata>;

/** Authorization server metadata (RFC 8414 section 2, OpenID Connect Discovery section 3), as much of it as is used. */
const serverMetadata = z.object({
  issuer: url,
  authorization_endpoint: url,
  token_endpoint: url,
  registration_endpoint: url.optional(),
  scopes_supported: words.optional(),
  code_challenge_methods_supported: words.optional(),
  token_endpoint_auth_methods_supported: words.optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
  protected_resources: z.array(z.string().max(2_000)).max(1_000).optional(),
});
export type ServerMetadata = z.infer<typeof serverMetadata>;

interface Way {
  readonly outbound: Outbound;
  readonly isLocal: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** No call begins later than this: a server may name many places, each of which takes its time. */
const MOST_MS = 30_000;

/**
 * Finds where a server is signed in to (the MCP authorization specification): the server's 401 names its metadata, else that
 * lies at its well-known places; it names an authorization server, whose metadata names the rest. The query of the server's
 * URL is never sent: it may hold references. Refuses with a sentence.
 */
export async function discoverAuthorization(
  way: Way,
  serverUrl: string,
): Promise<Result<McpAuthorizationServer, string>> {
  const ends = way.now() + MOST_MS;
  return discover({ ...way, isOver: () => way.now() >= ends }, serverUrl);
}

interface TimedWay extends Way {
  readonly isOver: () => boolean;
}

async function discover(way: TimedWay, serverUrl: string): Promise<Result<McpAuthorizationServer, string>> {
  const server = new URL(serverUrl);
  const asked = await ask(way, server);
  if (!asked.ok) return asked;
  const found = await findResource(way, server, asked.value.metadataUrl);
  if (!found.ok) return found;
  const resource = found.value?.resource ?? server.origin + server.pathname;
  const issuers = found.value?.authorization_servers ?? [server.origin];
  const metadata = await findServer(way, issuers);
  if (!metadata.ok) return metadata;
  if (metadata.value.protected_resources?.includes(resource) === false) {
    return err(`${new URL(metadata.value.issuer).hostname} signs in to other servers only (RFC 9728 section 4)`);
  }
  const scopes = asked.value.scopes ?? found.value?.scopes_supported ?? [];
  return ok({ resource, scopes, metadata: metadata.value, otherHosts: otherHostsOf(server, metadata.value) });
}

/**
 * A server may name the authorization server of somebody else, or one whose endpoints are somebody else's: the person would
 * agree there to something for this one. Without a list of which domains belong together only the very host is its own.
 */
function otherHostsOf(server: URL, metadata: ServerMetadata): readonly string[] {
  const { issuer, authorization_endpoint, token_endpoint, registration_endpoint } = metadata;
  const named = [
    issuer,
    authorization_endpoint,
    token_endpoint,
    ...(registration_endpoint ? [registration_endpoint] : []),
  ];
  const hosts = new Set(named.map((text) => new URL(text).host));
  return [...hosts].filter((host) => host !== server.host).toSorted();
}

interface Challenge {
  readonly metadataUrl: string | null;
  readonly scopes: readonly string[] | null;
}

/** A call without a token, which a server that wants one answers with where to get it. */
async function ask({ outbound }: Way, server: URL): Promise<Result<Challenge, string>> {
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const request = {
    method: 'POST',
    url: server.origin + server.pathname,
    headers,
    body: new TextEncoder().encode(ping),
  };
  const called = await outbound.call(request);
  if (!called.ok) return err(called.error.message);
  const challenge = bearerChallenge(called.value.status === 401 ? (called.value.wwwAuthenticate ?? '') : '');
  const scopes = challenge['scope']?.split(' ').filter((scope) => scope !== '');
  return ok({ metadataUrl: challenge['resource_metadata'] ?? null, scopes: scopes ?? null });
}

/** The metadata of the server; null where it has none, as servers of before. Refuses one that is for something else. */
async function findResource(
  way: TimedWay,
  server: URL,
  named: string | null,
): Promise<Result<ResourceMetadata | null, string>> {
  const path = server.pathname === '/' ? '' : server.pathname;
  const wellKnown = `${server.origin}/.well-known/oauth-protected-resource`;
  for (const place of named === null ? [wellKnown + path, wellKnown] : [named]) {
    const metadata = await read(way, place, resourceMetadata);
    if (metadata === null) continue;
    if (isFor(new URL(metadata.resource), server)) return ok(metadata);
    return err(`the metadata of ${server.hostname} is about another server (RFC 9728 section 3.3)`);
  }
  return named === null ? ok(null) : err(`${server.hostname} names metadata that cannot be read`);
}

/** A token for a resource is for what lies below it, and nothing else. */
function isFor(resource: URL, server: URL): boolean {
  const prefix = resource.pathname.endsWith('/') ? resource.pathname : `${resource.pathname}/`;
  return resource.origin === server.origin && `${server.pathname}/`.startsWith(prefix);
}

async function findServer(way: TimedWay, issuers: readonly string[]): Promise<Result<ServerMetadata, string>> {
  for (const issuer of issuers) {
    for (const place of metadataPlaces(new URL(issuer))) {
      const metadata = await read(way, place, serverMetadata);
      if (metadata === null) continue;
      const problem = serverProblem(way, metadata, issuer);
      return problem === null ? ok(metadata) : err(problem);
    }
  }
  const hosts = issuers.map((issuer) => new URL(issuer).hostname).join(', ');
  return err(`no authorization server says how to sign in there (asked: ${hosts})`);
}

/** Where the metadata of an issuer lies, the first place first (RFC 8414 section 3.1, OpenID Connect Discovery section 4.1). */
function metadataPlaces({ origin, pathname }: URL): readonly string[] {
  const path = pathname.replace(/\/$/, '');
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
  ];
  return path === '' ? places : [...places, `${origin}${path}/.well-known/openid-configuration`];
}

/** Why an authorization server is not gone to; null when it is. */
function serverProblem({ isLocal }: Way, metadata: ServerMetadata, issuer: string): string | null {
  const { hostname } = new URL(issuer);
  if (withoutSlash(metadata.issuer) !== withoutSlash(issuer)) {
    return `what ${hostname} says of itself is about another server (RFC 8414 section 3.3)`;
  }
  if (metadata.code_challenge_methods_supported?.includes('S256') !== true) {
    return `${hostname} does not say that it takes PKCE with S256, without which a stolen code is a stolen token`;
  }
  const asks = [...new URL(metadata.authorization_endpoint).searchParams.keys()].find((name) => ASKS.test(name));
  if (asks !== undefined) {
    return `${hostname} names a place to sign in that says ${JSON.stringify(asks)} by itself, which is for us to say`;
  }
  const endpoints = [metadata.authorization_endpoint, metadata.token_endpoint, metadata.registration_endpoint];
  for (const endpoint of endpoints) {
    const problem = endpoint === undefined ? null : targetProblem(new URL(endpoint), isLocal);
    if (problem !== null) return problem.message;
  }
  return null;
}

/** Parameters that say what is asked for, or in whose name; in the endpoint's own URL they would be asked for unseen. */
const ASKS =
  /^(?:client_id|redirect_uri|response_type|response_mode|scope|state|resource|audience|request|request_uri|claims|prompt|nonce|code_challenge|code_challenge_method|authorization_details|login_hint|id_token_hint)$/i;

function withoutSlash(text: string): string {
  return text.replace(/\/$/, '');
}

/** A JSON document of this form; null for anything else. What may be called at all, the outbound port says. */
async function read<T>({ outbound, isOver }: TimedWay, place: string, form: z.ZodType<T>): Promise<T | null> {
  if (isOver() || !URL.canParse(place)) return null;
  const called = await outbound.call({
    method: 'GET',
    url: place,
    headers: { accept: 'application/json' },
    body: null,
  });
  if (!called.ok || called.value.status !== 200) return null;
  const parsed = form.safeParse(parseJsonBytes(called.value.body));
  return parsed.success ? parsed.data : null;
}
