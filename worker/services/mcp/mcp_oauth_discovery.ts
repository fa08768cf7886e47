import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { bearerChallenge } from '../oauth/bearer_challenge.ts';
import { type Outbound, targetProblem } from '../../kernel/outbound.ts';
import { parseJsonBytes } from '../../../shared/model/json.ts';

/** The authorization server of a remote MCP server, according to the metadata of both. */
export interface McpAuthorizationServer {
  /** The resource that tokens are requested for (RFC 8707). */
  readonly resource: string;
  /** The scopes that the server requires of its clients. */
  readonly scopes: readonly string[];
  readonly metadata: ServerMetadata;
  /** Hosts of the sign-in other than the server's own, which a person, a code or a token would go to; sorted. */
  readonly otherHosts: readonly string[];
}

const url = z
  .string()
  .max(2_000)
  .refine((text) => URL.canParse(text));
const words = z.array(z.string().max(200)).max(200);

/** The fields used of protected resource metadata (RFC 9728 section 2). */
const resourceMetadata = z.object({
  resource: url,
  authorization_servers: z.array(url).min(1).max(20).optional(),
  scopes_supported: words.optional(),
});
type ResourceMetadata = z.infer<typeof resourceMetadata>;

/** The fields used of authorization server metadata (RFC 8414 section 2, OpenID Connect Discovery section 3). */
const serverMetadata = z.object({
  issuer: url,
  authorization_endpoint: url,
  token_endpoint: url,
  registration_endpoint: url.optional(),
  /** An unusable one is no reason against a sign-in. */
  revocation_endpoint: url.optional().catch(undefined),
  scopes_supported: words.optional(),
  code_challenge_methods_supported: words.optional(),
  token_endpoint_auth_methods_supported: words.optional(),
  token_endpoint_auth_signing_alg_values_supported: words.optional().catch(undefined),
  client_id_metadata_document_supported: z.boolean().optional().catch(undefined),
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

/** No call starts after this time. A server may name many URLs, and each may be slow. */
const MOST_MS = 30_000;

/**
 * Discovers a server's authorization server (MCP authorisation specification). The server's 401 names its metadata, or
 * the metadata is at a well-known URL. That names an authorization server, whose metadata names the endpoints. The
 * query of the server's URL is never sent, because it may contain references. The error is a sentence.
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
    return err(`${new URL(metadata.value.issuer).hostname} issues tokens for other servers only (RFC 9728 section 4)`);
  }
  const scopes = asked.value.scopes ?? found.value?.scopes_supported ?? [];
  return ok({ resource, scopes, metadata: metadata.value, otherHosts: findOtherHosts(server, metadata.value) });
}

/**
 * A malicious server may name somebody else's authorization server or endpoints, so that the person grants it access
 * there. Without a list of related domains, only the server's exact host counts as its own.
 */
function findOtherHosts(server: URL, metadata: ServerMetadata): readonly string[] {
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

/** Calls without a token. A server that requires one answers where to get it. */
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

/** The metadata of the server; null if it has none, as older servers do. Refuses metadata of another resource. */
async function findResource(
  way: TimedWay,
  server: URL,
  named: string | null,
): Promise<Result<ResourceMetadata | null, string>> {
  const path = server.pathname === '/' ? '' : server.pathname;
  const wellKnown = `${server.origin}/.well-known/oauth-protected-resource`;
  for (const address of named === null ? [wellKnown + path, wellKnown] : [named]) {
    const metadata = await read(way, address, resourceMetadata);
    if (metadata === null) continue;
    if (isFor(new URL(metadata.resource), server)) return ok(metadata);
    return err(`the metadata of ${server.hostname} is for another server (RFC 9728 section 3.3)`);
  }
  return named === null ? ok(null) : err(`${server.hostname} names a metadata URL that has no valid metadata`);
}

/** A token for a resource is valid for what is below its URL, and nothing else. */
function isFor(resource: URL, server: URL): boolean {
  const prefix = resource.pathname.endsWith('/') ? resource.pathname : `${resource.pathname}/`;
  return resource.origin === server.origin && `${server.pathname}/`.startsWith(prefix);
}

async function findServer(way: TimedWay, issuers: readonly string[]): Promise<Result<ServerMetadata, string>> {
  for (const issuer of issuers) {
    for (const address of metadataUrls(new URL(issuer))) {
      const metadata = await read(way, address, serverMetadata);
      if (metadata === null) continue;
      const problem = serverProblem(way, metadata, issuer);
      return problem === null ? ok(metadata) : err(problem);
    }
  }
  const hosts = issuers.map((issuer) => new URL(issuer).hostname).join(', ');
  return err(`no authorization server metadata was found (asked: ${hosts})`);
}

/** The URLs of an issuer's metadata in order (RFC 8414 section 3.1, OpenID Connect Discovery section 4.1). */
function metadataUrls({ origin, pathname }: URL): readonly string[] {
  const path = pathname.replace(/\/$/, '');
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
  ];
  return path === '' ? urls : [...urls, `${origin}${path}/.well-known/openid-configuration`];
}

/** Why an authorization server is not used; null if it is. */
function serverProblem({ isLocal }: Way, metadata: ServerMetadata, issuer: string): string | null {
  const { hostname } = new URL(issuer);
  if (withoutSlash(metadata.issuer) !== withoutSlash(issuer)) {
    return `the metadata of ${hostname} names another issuer (RFC 8414 section 3.3)`;
  }
  if (metadata.code_challenge_methods_supported?.includes('S256') !== true) {
    return `${hostname} does not announce PKCE with S256, without which a stolen code gives a token`;
  }
  const asks = [...new URL(metadata.authorization_endpoint).searchParams.keys()].find((name) => ASKS.test(name));
  if (asks !== undefined) {
    return `the authorisation endpoint of ${hostname} already has the parameter ${JSON.stringify(asks)}, which only the client may set`;
  }
  const endpoints = [metadata.authorization_endpoint, metadata.token_endpoint, metadata.registration_endpoint];
  for (const endpoint of endpoints) {
    const problem = endpoint === undefined ? null : targetProblem(new URL(endpoint), isLocal);
    if (problem !== null) return problem.message;
  }
  return null;
}

/** Parameters that decide what is requested and for whom. In the endpoint's own URL they would go unnoticed. */
const ASKS =
  /^(?:client_id|redirect_uri|response_type|response_mode|scope|state|resource|audience|request|request_uri|claims|prompt|nonce|code_challenge|code_challenge_method|authorization_details|login_hint|id_token_hint)$/i;

function withoutSlash(text: string): string {
  return text.replace(/\/$/, '');
}

/**
 * Fetches a JSON document of this schema; null for anything else. The outbound port decides which URLs may be called.
 */
async function read<T>({ outbound, isOver }: TimedWay, address: string, form: z.ZodType<T>): Promise<T | null> {
  if (isOver() || !URL.canParse(address)) return null;
  const called = await outbound.call({
    method: 'GET',
    url: address,
    headers: { accept: 'application/json' },
    body: null,
  });
  if (!called.ok || called.value.status !== 200) return null;
  const parsed = form.safeParse(parseJsonBytes(called.value.body));
  return parsed.success ? parsed.data : null;
}
