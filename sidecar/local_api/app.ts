import { Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { type Caller, callersOf } from './callers.ts';
import { addGauges } from './gauges.ts';
import { hostHealth, publicHealth, sessionHealth } from './health.ts';
import { errorReply, localError, TOKEN_REQUIRED } from './local_error.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import type { LocalEnv } from './local_env.ts';
import { noteContainer, openListener } from './container_routes.ts';
import { type RunRequest, runRequest } from '../../shared/wire/connectors/connectors.ts';
import {
  auditAcceptInput,
  type BoundaryInput,
  boundaryInput,
  containerInput,
  disabledInput,
  listenerInput,
  planLockInput,
  sessionInput,
  stepScopeInput,
  stepStartInput,
  unsealedInput,
} from './inputs.ts';
import { connectorOperations, operationsQuery } from './connector_list.ts';
import { ACTING_SESSION_HEADER } from '../../shared/wire/connectors/connector_operations.ts';
import { resolveActingCaller, listFor, runFor } from './connector_routes.ts';
import { acceptMismatch, recordDisabled, releaseUnsealed } from './launch_routes.ts';
import { addBorrowRoutes } from './borrow_routes.ts';
import { addMcpEndpoint, addMcpRoutes } from './mcp_routes.ts';
import { NOT_STORED, replyOf } from './reply_of.ts';
import { checkInput, inputOf } from './request_input.ts';
import { closeStepScope, openStepScope, recordStepStart, signPlanLock } from './plan_routes.ts';
import { addSdkRoutes } from './sdk_routes.ts';
import { createSession, endSession, listSessions, resumeSession, showSession } from './session_routes.ts';
import type { Session } from '../session/session.ts';

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

/** The sidecar's local API (design section 8). */
export function createLocalApi(options: LocalApiOptions): Hono<LocalEnv> {
  addGauges(options);
  const callerOf = callersOf(options.hostToken, options.sessions);
  return apiFor(options, { callerOf, extraNames: options.hostNames ?? [], owner: null });
}

/** Which callers a listener in a container's reach answers. */
interface ContainerReach {
  /** The only session that is accepted there; null accepts every session. The host token is never accepted. */
  readonly session: Session | null;
  readonly hostNames: readonly string[];
}

/** The same API as containers reach it. The host token and other sessions' tokens are unknown there. */
export function createContainerApi(options: LocalApiOptions, { session, hostNames }: ContainerReach): Hono<LocalEnv> {
  const withToken = (token: string): Session | null => {
    const found = options.sessions.withToken(token);
    return session === null || found === session ? found : null;
  };
  return apiFor(options, { callerOf: callersOf(null, { withToken }), extraNames: hostNames, owner: session });
}

interface ApiReach {
  readonly callerOf: ReturnType<typeof callersOf>;
  /** Names of this API besides those of loopback. */
  readonly extraNames: readonly string[];
  /** The session that alone reaches the listener; null if others do as well. */
  readonly owner: Session | null;
}

function apiFor(options: LocalApiOptions, { callerOf, extraNames, owner }: ApiReach): Hono<LocalEnv> {
  const app = new Hono<LocalEnv>();
  const hostNames = new Set([...LOOPBACK_NAMES, ...extraNames.map(toHostName)]);
  app.use(async (c, next) => {
    if (!isNamed(hostNames, c.req.header('host'))) return errorReply(MISDIRECTED);
    const caller = callerOf(c.req.header('authorization'));
    if (caller.kind === 'unknown') return errorReply(UNAUTHENTICATED);
    c.set('caller', caller);
    c.header('cache-control', 'no-store');
    return next();
  });
  addMcpEndpoint(app, options);
  const { maxApiBodyBytes, maxRunRequestBytes } = options.limits;
  const [limitRun, limitBody] = [limitTo(maxRunRequestBytes), limitTo(maxApiBodyBytes)];
  app.use((c, next) => {
    // A caller without a token is refused before its body is read, so it uses no memory.
    if (c.get('caller').kind === 'anonymous') return next();
    return RUNS.has(c.req.path) ? limitRun(c, next) : limitBody(c, next);
  });
  app.get('/v1/health', (c) => c.json(healthFor(options, c.get('caller'))));
  addConnectorRoutes(app, options);
  addSdkRoutes(app, options, { callerOf, owner });
  app.use('/v1/sandbox-proxy/*', async (c, next) => hostOnly(c.get('caller')) ?? next());
  app.use('/v1/audit-log/*', async (c, next) => hostOnly(c.get('caller')) ?? next());
  app.use('/v1/borrowed-secrets/*', async (c, next) => hostOnly(c.get('caller')) ?? next());
  app.use('/v1/mcp/*', async (c, next) => hostOnly(c.get('caller')) ?? next());
  app.use('/metrics', async (c, next) => hostOnly(c.get('caller')) ?? next());
  addSessionRoutes(app, options);
  addLaunchRoutes(app, options);
  addMcpRoutes(app, options);
  addBorrowRoutes(app, options);
  app.get('/metrics', (c) => c.text(options.metrics.render(), 200, { 'content-type': PROMETHEUS_TEXT }));
  app.notFound(() => errorReply(localError('not_found', 'There is nothing at this path of the local API.')));
  app.onError((error) => {
    options.warn(`The local API failed: ${error.stack ?? error.message}`);
    return errorReply(localError('internal_error', 'The local API failed; see the log.'));
  });
  return app;
}

/** The routes that a session's token opens besides the proxy. They come before the routes for the host token only. */
function addConnectorRoutes(app: Hono<LocalEnv>, options: LocalApiOptions): void {
  const { operations } = options;
  app.get('/v1/connector-operations', async (c) => {
    const caller = c.get('caller');
    if (caller.kind === 'anonymous') return errorReply(TOKEN_REQUIRED);
    const query = checkInput(operationsQuery, c.req.query());
    if (!query.ok) return errorReply(query.error);
    const heldEtag = c.req.header('if-none-match') ?? null;
    const held = { heldEtag, waitMs: query.value.wait * 1000 };
    const list = await listFor(caller, c.req.raw.signal, (signal) => connectorOperations(options, { ...held, signal }));
    if (!list.ok) return errorReply(list.error);
    const headers = { ...NOT_STORED, etag: list.value.etag };
    if (list.value.etag === heldEtag) return new Response(null, { status: 304, headers });
    return Response.json(list.value.body(), { headers });
  });
  app.post('/v1/connector-operations/run', async (c) => {
    const caller = c.get('caller');
    if (caller.kind === 'anonymous') return errorReply(TOKEN_REQUIRED);
    const acting = resolveActingCaller(caller, c.req.header(ACTING_SESSION_HEADER), options.sessions);
    if (!acting.ok) return errorReply(acting.error);
    const input = await inputOf(c.req.raw, runRequest);
    const run = (request: RunRequest) =>
      runFor(acting.value, 'generated_connector_shim', c.req.raw.signal, (runner) => operations.run(request, runner));
    return replyOf(input.ok ? await run(input.value) : input);
  });
  app.post('/v1/sandbox-proxy/requests', async (c) => {
    const caller = c.get('caller');
    if (caller.kind === 'anonymous') return errorReply(TOKEN_REQUIRED);
    const input = await inputOf(c.req.raw, boundaryInput);
    const run = (request: BoundaryInput) =>
      runFor(caller, 'daemon_request_boundary', c.req.raw.signal, (runner) => operations.request(request, runner));
    return replyOf(input.ok ? await run(input.value) : input);
  });
}

function addSessionRoutes(app: Hono<LocalEnv>, options: LocalApiOptions): void {
  const path = '/v1/sandbox-proxy/sessions';
  app.post(path, async (c) => {
    const input = await inputOf(c.req.raw, sessionInput);
    return replyOf(input.ok ? await createSession(options, input.value) : input, 201);
  });
  app.get(path, (c) => c.json(listSessions(options)));
  app.get(`${path}/:id`, (c) => replyOf(showSession(options, c.req.param('id'))));
  app.post(`${path}/:id/resume`, (c) => replyOf(resumeSession(options, c.req.param('id'))));
  app.delete(`${path}/:id`, async (c) => {
    const asked = { withReasons: c.req.query('reasons') === 'true' };
    return replyOf(await endSession(options, c.req.param('id'), asked));
  });
  app.put(`${path}/:id/container`, async (c) => {
    const input = await inputOf(c.req.raw, containerInput);
    return replyOf(input.ok ? await noteContainer(options, c.req.param('id'), input.value.container_id) : input);
  });
  app.post(`${path}/:id/listener`, async (c) => {
    const input = await inputOf(c.req.raw, listenerInput);
    return replyOf(input.ok ? await openListener(options, c.req.param('id'), input.value) : input, 201);
  });
}

function addLaunchRoutes(app: Hono<LocalEnv>, options: LocalApiOptions): void {
  app.post('/v1/audit-log/accept', async (c) => {
    const input = await inputOf(c.req.raw, auditAcceptInput);
    return replyOf(input.ok ? await acceptMismatch(options, input.value) : input);
  });
  app.post('/v1/sandbox-proxy/disabled', async (c) => {
    const input = await inputOf(c.req.raw, disabledInput);
    return replyOf(input.ok ? await recordDisabled(options, input.value) : input);
  });
  app.post('/v1/sandbox-proxy/unsealed', async (c) => {
    const input = await inputOf(c.req.raw, unsealedInput);
    return replyOf(input.ok ? await releaseUnsealed(options, input.value) : input);
  });
  app.post('/v1/sandbox-proxy/plan-locks', async (c) => {
    const input = await inputOf(c.req.raw, planLockInput);
    return replyOf(input.ok ? await signPlanLock(options, input.value) : input);
  });
  app.post('/v1/sandbox-proxy/step-scopes', async (c) => {
    const input = await inputOf(c.req.raw, stepScopeInput);
    return replyOf(input.ok ? await openStepScope(options, input.value) : input, 201);
  });
  app.post('/v1/sandbox-proxy/step-starts', async (c) => {
    const input = await inputOf(c.req.raw, stepStartInput);
    return replyOf(input.ok ? recordStepStart(options, input.value) : input);
  });
  app.delete('/v1/sandbox-proxy/step-scopes/:id', async (c) =>
    replyOf(await closeStepScope(options, c.req.param('id'))),
  );
}

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const MISDIRECTED = localError(
  'misdirected_host',
  "This API answers only to this machine's own names: call it as 127.0.0.1 or localhost.",
);
const UNAUTHENTICATED = localError(
  'unauthenticated',
  'The token is unknown. Use the one in host.token of the state directory.',
);
const TOKEN_MISSING = localError(
  'unauthenticated',
  'Give the token in host.token of the state directory as a bearer token.',
);
const HOST_TOKEN_REQUIRED = localError('host_token_required', "A session's token may not do this.");
/** Endpoints that run an operation have their own limit (design section 11). */
const RUNS: ReadonlySet<string> = new Set(['/v1/connector-operations/run', '/v1/sandbox-proxy/requests']);

function limitTo(maxSize: number): MiddlewareHandler<LocalEnv> {
  const refused = localError('body_too_large', `The body is larger than ${maxSize} bytes.`);
  return bodyLimit({ maxSize, onError: () => errorReply(refused) });
}

function healthFor(options: LocalApiOptions, caller: Caller): object {
  if (caller.kind === 'host') return hostHealth(options);
  return caller.kind === 'session' ? sessionHealth(options, caller.session) : publicHealth(options);
}

function hostOnly(caller: Caller): Response | null {
  if (caller.kind === 'host') return null;
  return errorReply(caller.kind === 'session' ? HOST_TOKEN_REQUIRED : TOKEN_MISSING);
}

/** An address as written in a Host header. */
function toHostName(address: string): string {
  return address.includes(':') && !address.startsWith('[') ? `[${address}]` : address;
}

/** Blocks DNS rebinding: a browser that was led here by an attacker's host name sends that name in Host. */
function isNamed(names: ReadonlySet<string>, host: string | undefined): boolean {
  return host !== undefined && names.has(host.toLowerCase().replace(/:\d{1,5}$/, ''));
}
