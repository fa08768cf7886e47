import type { Hono } from 'hono';
import { AWS_CREDENTIALS_PATH, AZURE_TOKEN_PATH, GOOGLE_METADATA_PATH } from '../../shared/net/sdk_endpoints.ts';
import type { Session } from '../session/session.ts';
import type { BearerPlaceholder } from './bearer_placeholder.ts';
import type { Caller, callersOf } from './callers.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import type { LocalEnv } from './local_env.ts';
import { errorReply, localError, TOKEN_REQUIRED } from './local_error.ts';
import { awsPlaceholderFor, bearerPlaceholderFor } from './session_routes.ts';

interface SdkReach {
  readonly callerOf: ReturnType<typeof callersOf>;
  /** The session that alone reaches the listener; null if others do as well. */
  readonly owner: Session | null;
}

/**
 * What the SDKs of clouds ask for on the machine that they run on (decision 0117). It is for sessions only: the host token is not
 * given to SDKs. No reply has a credential.
 */
export function addSdkRoutes(app: Hono<LocalEnv>, options: LocalApiOptions, reach: SdkReach): void {
  addAws(app, options);
  addAzure(app, options, reach);
  addGoogle(app, options, reach);
}

/** https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html */
function addAws(app: Hono<LocalEnv>, options: LocalApiOptions): void {
  app.get(AWS_CREDENTIALS_PATH, (c) => {
    const caller = c.get('caller');
    if (caller.kind !== 'session') return errorReply(TOKEN_REQUIRED);
    const placeholder = awsPlaceholderFor(options, caller.session);
    return placeholder === null ? errorReply(NOT_BOUND_TO_AWS) : c.json(placeholder);
  });
}

/** The only version of the endpoint whose secret is in this header. */
const AZURE_VERSION = '2019-08-01';
const AZURE_HEADER = 'x-identity-header';

/**
 * https://learn.microsoft.com/azure/app-service/overview-managed-identity (REST endpoint reference). The token is in a header of
 * its own, which a request that a server was tricked into does not have.
 */
function addAzure(app: Hono<LocalEnv>, options: LocalApiOptions, { callerOf }: SdkReach): void {
  app.get(AZURE_TOKEN_PATH, (c) => {
    const token = c.req.header(AZURE_HEADER);
    const caller = token === undefined ? null : callerOf(`Bearer ${token}`);
    if (caller?.kind !== 'session') return errorReply(IDENTITY_HEADER_REQUIRED);
    const { resource, 'api-version': version } = c.req.query();
    if (version !== AZURE_VERSION) return errorReply(WRONG_AZURE_VERSION);
    if (resource === undefined || resource === '') return errorReply(RESOURCE_MISSING);
    const placeholder = bearerPlaceholderFor(options, caller.session, 'azure', hostOf(resource));
    if (placeholder === null) return errorReply(NOT_BOUND_TO_AZURE);
    const expiresOn = String(Math.floor(placeholder.expiresAt / 1000));
    return c.json({ access_token: placeholder.token, expires_on: expiresOn, resource, token_type: 'Bearer' });
  });
}

/** The host of a resource such as `https://management.azure.com/`; null for one such as `api://…`. */
function hostOf(resource: string): string | null {
  if (!URL.canParse(resource)) return null;
  const { protocol, hostname } = new URL(resource);
  return protocol === 'https:' ? hostname : null;
}

const FLAVOR = 'Metadata-Flavor';
const ACCOUNTS = `${GOOGLE_METADATA_PATH}/v1/instance/service-accounts`;
const ACCOUNT = `${ACCOUNTS}/default`;
/** The account is listed by an address too: `gcloud` uses no account that has only an alias. */
const EMAIL = 'placeholder@svc.invalid';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** What does not depend on the session, as listings and values of the metadata server. */
const METADATA: Readonly<Record<string, string>> = {
  '/': 'computeMetadata/\n',
  [GOOGLE_METADATA_PATH]: 'v1/\n',
  [`${GOOGLE_METADATA_PATH}/v1`]: 'instance/\nproject/\nuniverse/\n',
  [`${GOOGLE_METADATA_PATH}/v1/instance`]: 'service-accounts/\n',
  [ACCOUNTS]: `default/\n${EMAIL}/\n`,
  [ACCOUNT]: 'aliases\nemail\nscopes\ntoken\n',
  [`${ACCOUNT}/aliases`]: 'default\n',
  [`${ACCOUNT}/email`]: EMAIL,
  [`${ACCOUNT}/scopes`]: `${SCOPE}\n`,
  [`${GOOGLE_METADATA_PATH}/v1/project`]: 'numeric-project-id\nproject-id\n',
  // `gcloud` believes a metadata server that has a number here. No project has this one.
  [`${GOOGLE_METADATA_PATH}/v1/project/numeric-project-id`]: '0',
  // svc knows no project. `gcloud` ends with an error unless it is told so with 200, also where a person names one.
  [`${GOOGLE_METADATA_PATH}/v1/project/project-id`]: '',
  [`${GOOGLE_METADATA_PATH}/v1/universe/universe-domain`]: 'googleapis.com',
};
const ACCOUNT_INFO = { aliases: ['default'], email: EMAIL, scopes: [SCOPE] };

/**
 * The parts of Google's metadata server that its libraries ask for (https://cloud.google.com/compute/docs/metadata). They send
 * no token, so the session is that of a listener that answers nobody else.
 */
function addGoogle(app: Hono<LocalEnv>, options: LocalApiOptions, { owner }: SdkReach): void {
  app.all(`${GOOGLE_METADATA_PATH}/*`, (c) =>
    answerMetadata(c.req.raw, sessionOf(c.get('caller'), owner, options), options),
  );
  app.get('/', async (c, next) => {
    const session = sessionOf(c.get('caller'), owner, options);
    return session === null ? next() : answerMetadata(c.req.raw, session, options);
  });
}

function answerMetadata(
  { method, url, headers }: Request,
  session: Session | null,
  options: LocalApiOptions,
): Response {
  // A request that a server was tricked into has no such header, and one that a proxy forwards has the second.
  if (headers.get(FLAVOR) !== 'Google') return metadataText(403, 'Missing Metadata-Flavor:Google header.');
  if (headers.has('x-forwarded-for')) return metadataText(403, 'X-Forwarded-For is not allowed.');
  if (session === null) return errorReply(TOKEN_REQUIRED);
  if (method !== 'GET') return metadataText(405, 'Only GET is served.');
  const placeholder = bearerPlaceholderFor(options, session, 'google');
  if (placeholder === null) return metadataText(404, NOT_BOUND_TO_GOOGLE);
  const { pathname, searchParams } = new URL(url);
  const path = pathname.replace(/(?<=.)\/$/, '').replace(BY_ADDRESS, ACCOUNT);
  return metadataOf(path, searchParams, placeholder, options.clock.now());
}

/** The account by its address, whose sign may be encoded. */
const BY_ADDRESS = new RegExp(`^${ACCOUNTS}/placeholder(@|%40)svc\\.invalid(?=/|$)`);

function metadataOf(path: string, query: URLSearchParams, placeholder: BearerPlaceholder, nowMs: number): Response {
  if (path === `${ACCOUNT}/token`) {
    const expiresIn = Math.max(0, Math.floor((placeholder.expiresAt - nowMs) / 1000));
    return metadataJson({ access_token: placeholder.token, expires_in: expiresIn, token_type: 'Bearer' });
  }
  if (path === ACCOUNT && query.get('recursive')?.toLowerCase() === 'true') return metadataJson(ACCOUNT_INFO);
  const text = METADATA[path];
  if (text !== undefined) return metadataText(200, text);
  return metadataText(404, NO_METADATA);
}

/**
 * The session of a caller: by its token, or the one whose listener it is. At such a listener the host token and other sessions'
 * tokens are unknown, and refused before.
 */
function sessionOf(caller: Caller, owner: Session | null, { sessions }: LocalApiOptions): Session | null {
  if (caller.kind === 'session') return caller.session;
  return owner === null ? null : sessions.get(owner.id);
}

function metadataText(status: number, text: string): Response {
  return metadata(status, text, 'application/text');
}

function metadataJson(value: object): Response {
  return metadata(200, JSON.stringify(value), 'application/json');
}

function metadata(status: number, body: string, type: string): Response {
  const headers = { 'content-type': type, 'cache-control': 'no-store', [FLAVOR]: 'Google' };
  return new Response(body, { status, headers });
}

const NOT_BOUND_TO_AWS = localError(
  'not_found',
  'No binding signs for AWS: bind a host of AWS with svc binding add HOST --scheme sigv4-resign.',
);
const NOT_BOUND_TO_AZURE = localError(
  'not_found',
  'No binding is for Azure: bind a host of Azure, such as management.azure.com, with svc binding add HOST --scheme bearer.',
);
const NOT_BOUND_TO_GOOGLE =
  'No binding is for Google: bind a host of googleapis.com with svc binding add HOST --scheme bearer.';
const NO_METADATA = 'svc has only the metadata of an access token.';
const IDENTITY_HEADER_REQUIRED = localError(
  'unauthenticated',
  'Give the session’s token (SVC_TOKEN) in the header X-IDENTITY-HEADER.',
);
const WRONG_AZURE_VERSION = localError('invalid_input', `api-version: use ${AZURE_VERSION}.`);
const RESOURCE_MISSING = localError(
  'invalid_input',
  'resource: is missing; name the API that the token is for, such as https://management.azure.com/.',
);
