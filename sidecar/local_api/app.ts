import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { type Caller, callersOf } from './callers.ts';
import { addGauges } from './gauges.ts';
import { hostHealth, publicHealth, sessionHealth } from './health.ts';
import { errorReply, localError, type LocalError } from './local_error.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { createSession, endSession, listSessions, sessionInput } from './session_routes.ts';

interface Env {
  Variables: { caller: Caller };
}

const MAX_BODY_BYTES = 64 * 1024;
const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

/** The daemon's local API (design section 8). */
export function createLocalApi(options: LocalApiOptions): Hono<Env> {
  const app = new Hono<Env>();
  addGauges(options);
  const callerOf = callersOf(options.hostToken, options.sessions);
  const hostNames = new Set([...LOOPBACK_NAMES, ...(options.hostNames ?? []).map(asHostName)]);

  app.use(async (c, next) => {
    if (!isNamed(hostNames, c.req.header('host'))) return errorReply(MISDIRECTED);
    const caller = callerOf(c.req.header('authorization'));
    if (caller.kind === 'unknown') return errorReply(UNAUTHENTICATED);
    c.set('caller', caller);
    c.header('cache-control', 'no-store');
    return next();
  });
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: () => errorReply(TOO_LARGE) }));
  app.get('/v1/health', (c) => c.json(healthFor(options, c.get('caller'))));
  addHostRoutes(app, options);
  app.notFound(() => errorReply(localError('not_found', 'There is nothing at this path of the local API.')));
  app.onError((error) => {
    options.warn(`The local API failed: ${error.stack ?? error.message}`);
    return errorReply(localError('internal_error', 'The local API failed; the log says more.'));
  });
  return app;
}

/** What only the host token may do. */
function addHostRoutes(app: Hono<Env>, options: LocalApiOptions): void {
  app.use('/v1/sandbox-proxy/*', async (c, next) => hostOnly(c.get('caller')) ?? next());
  app.use('/metrics', async (c, next) => hostOnly(c.get('caller')) ?? next());
  app.post('/v1/sandbox-proxy/sessions', async (c) => {
    const input = await inputOf(c.req.raw, sessionInput);
    const created = input.ok ? await createSession(options, input.value) : input;
    return created.ok ? c.json(created.value, 201) : errorReply(created.error);
  });
  app.get('/v1/sandbox-proxy/sessions', (c) => c.json(listSessions(options)));
  app.delete('/v1/sandbox-proxy/sessions/:id', async (c) => {
    const ended = await endSession(options, c.req.param('id'));
    return ended.ok ? c.body(null, 204) : errorReply(ended.error);
  });
  app.get('/metrics', (c) => c.text(options.metrics.render(), 200, { 'content-type': PROMETHEUS_TEXT }));
}

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const MISDIRECTED = localError(
  'misdirected_host',
  'This API answers only to the names of this machine: call it as 127.0.0.1 or localhost.',
);
const UNAUTHENTICATED = localError(
  'unauthenticated',
  'The token is not known here. Use the one in host.token of the state directory.',
);
const TOKEN_MISSING = localError(
  'unauthenticated',
  'Give the token in host.token of the state directory as a bearer token.',
);
const HOST_TOKEN_REQUIRED = localError('host_token_required', "A session's token may not do this.");
const TOO_LARGE = localError('body_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes.`);

function healthFor(options: LocalApiOptions, caller: Caller): object {
  if (caller.kind === 'host') return hostHealth(options);
  return caller.kind === 'session' ? sessionHealth(options, caller.session) : publicHealth(options);
}

function hostOnly(caller: Caller): Response | null {
  if (caller.kind === 'host') return null;
  return errorReply(caller.kind === 'session' ? HOST_TOKEN_REQUIRED : TOKEN_MISSING);
}

/** An address as it stands in a Host header. */
function asHostName(address: string): string {
  return address.includes(':') && !address.startsWith('[') ? `[${address}]` : address;
}

/** A browser that was led here by a name of somebody else's (DNS rebinding) sends that name. */
function isNamed(names: ReadonlySet<string>, host: string | undefined): boolean {
  return host !== undefined && names.has(host.toLowerCase().replace(/:\d{1,5}$/, ''));
}

async function inputOf<T extends z.ZodType>(request: Request, schema: T): Promise<Result<z.output<T>, LocalError>> {
  const text = await request.text();
  let json: unknown;
  try {
    json = text === '' ? {} : JSON.parse(text);
  } catch {
    return err(localError('invalid_json', 'The body is not JSON.'));
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return ok(parsed.data);
  const fields = parsed.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  const [first] = fields;
  return err(
    localError('invalid_input', `${first?.field || 'The body'}: ${first?.message ?? 'is not valid'}`, { fields }),
  );
}
