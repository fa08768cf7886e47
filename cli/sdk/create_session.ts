import { readFileSync, statSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { errorCode } from '../../shared/model/error_code.ts';
import { identify, isAlive } from '../../machine/process_identity.ts';
import { SDK_ENDPOINTS, type SdkEndpoint } from '../../shared/net/sdk_endpoints.ts';
import { proxyUrlFor, sessionEnvironment } from '../../sandbox/launch/session_environment.ts';

// The package's `svc/session`: one file without dependencies, for programs that start agents themselves. The build bundles what it
// imports (tools/package/build_package.ts), so only modules without packages are imported here.

/** What a session is to be. */
export interface SessionOptions {
  /** The state directory that svc runs on. Default: `$SVC_HOME`, else `~/.svc`. */
  readonly home?: string;
  /** Shown in lists and in the audit log. */
  readonly name?: string;
  /** Where the work is done; whoever approves a request sees it. Default: the working directory. */
  readonly folder?: string;
  /** The session ends after this many seconds. It always ends with this process. */
  readonly ttlSeconds?: number;
  /** Hosts, or patterns such as `*.example.com`. The proxy allows only these and bound hosts. Default: every host. */
  readonly allowOnly?: readonly string[];
  /** References of the secrets to use where a host is bound to several, such as `vault://user/work`. */
  readonly use?: readonly string[];
  /** The session has at least this version of the policy: the reply header `Svc-Policy-Version` of a change. */
  readonly minPolicyVersion?: number;
  /**
   * Variables to start from. Those that would lead past the session, or that hold keys of svc, are left out; other credentials in
   * them are passed on. Default: none.
   */
  readonly inherit?: Readonly<Record<string, string | undefined>>;
}

/** An open session. */
export interface SvcSession {
  readonly id: string;
  /** The whole environment for a program: `inherit`, and what leads it through the proxy. It holds the session's token. */
  readonly environment: Readonly<Record<string, string>>;
  /** With the session's id and token. */
  readonly proxyUrl: string;
  /** The certificate, in PEM, of the session's CA, for a trust store of your own. */
  readonly ca: string;
  /** A file with the roots of the system and the session's CA. */
  readonly caBundlePath: string;
  readonly expiresAt: Date;
  /** Ends the session, and waits until its audit events are delivered. After it has ended, a call does nothing; one that failed can be made again. */
  end(): Promise<void>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Why there is no session: `not_running`, or a code of the sidecar such as `invalid_input`. */
export class SvcSessionError extends Error {
  override readonly name = 'SvcSessionError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The sidecar waits for the policy when a session is created, and for the audit log when it ends. */
const TIMEOUT_MS = 40_000;
const SESSIONS = '/v1/sandbox-proxy/sessions';

/** Opens a session of the sidecar that runs on this machine. */
export async function createSession(options: SessionOptions = {}): Promise<SvcSession> {
  const sidecar = findSidecar(options.home);
  const reply = await call(sidecar, 'POST', SESSIONS, bodyOf(options));
  const id = textField(reply, 'session_id');
  const proxyUrl = proxyUrlFor(textField(reply, 'proxy_url'), id, textField(reply, 'token'));
  const caBundlePath = textField(reply, 'ca_bundle_path');
  let ended: Promise<void> | null = null;
  const end = (): Promise<void> => {
    ended ??= endSession(sidecar, id).catch((error: unknown) => {
      ended = null;
      throw error;
    });
    return ended;
  };
  try {
    const access = { sentinels: sentinelsOf(reply), sdkEndpoints: sdkEndpointsOf(reply) };
    const session = { sessionId: id, proxyUrl, caBundlePath, ...access };
    return {
      id,
      environment: sessionEnvironment(options.inherit ?? {}, session),
      proxyUrl,
      ca: readFileSync(textField(reply, 'ca_pem_path'), 'utf8'),
      caBundlePath,
      expiresAt: new Date(textField(reply, 'expires_at')),
      end,
      [Symbol.asyncDispose]: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

function bodyOf(options: SessionOptions): object {
  const { name, folder = process.cwd(), ttlSeconds, allowOnly, use = [], minPolicyVersion } = options;
  return {
    ...(name !== undefined && { name }),
    folder,
    ...(ttlSeconds !== undefined && { ttl_seconds: ttlSeconds }),
    ...(allowOnly !== undefined && { allowed_hosts: allowOnly }),
    ...(use.length > 0 && { use_secrets: use.map((reference) => ({ reference, by: 'option' })) }),
    ...(minPolicyVersion !== undefined && { min_policy_version: minPolicyVersion }),
    // The session ends with this process, even if it is killed.
    owner: identify(process.pid),
  };
}

interface Sidecar {
  readonly origin: string;
  readonly token: string;
}

function findSidecar(given: string | undefined): Sidecar {
  const named = given ?? process.env['SVC_HOME'];
  // It would be the working directory, whose files may be a stranger's.
  if (named === '') throw new SvcSessionError('invalid_input', 'SVC_HOME is empty: give it a value, or unset it');
  const home = resolve(named ?? join(homedir(), '.svc'));
  const run = parse(readOrNull(join(home, 'run.json')) ?? '');
  const { proxy_url: origin, sidecar_pid: pid } = isObject(run) ? run : {};
  if (typeof origin !== 'string' || typeof pid !== 'number' || !isAlive(pid)) {
    throw new SvcSessionError('not_running', `svc is not running on ${home}: start it with svc up --detach`);
  }
  const file = join(home, 'sidecar', 'host.token');
  const token = readOrNull(file)?.trim() ?? '';
  if (!/^[\x21-\x7e]{16,256}$/.test(token)) {
    throw new SvcSessionError('not_running', `${file} has no token: start svc again, which makes one`);
  }
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new SvcSessionError('not_private', `${file} can be read by other users: svc doctor says what to do`);
  }
  return { origin, token };
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null;
    throw error;
  }
}

async function endSession(sidecar: Sidecar, id: string): Promise<void> {
  try {
    await call(sidecar, 'DELETE', `${SESSIONS}/${id}`);
  } catch (error) {
    // It has ended already, by its time or by a person.
    if (!(error instanceof SvcSessionError) || error.code !== 'not_found') throw error;
  }
}

/** Calls the sidecar directly, whatever proxy this process has. */
async function call({ origin, token }: Sidecar, method: string, path: string, body?: object): Promise<unknown> {
  const sent = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-length': Buffer.byteLength(sent),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const reply = await new Promise<IncomingMessage>((done, fail) => {
    const sending = request(new URL(path, origin), { method, agent: false, headers, signal }, done);
    sending.on('error', (cause) => {
      fail(new SvcSessionError('not_running', `the sidecar at ${origin} does not answer: ${cause.message}`));
    });
    sending.end(sent);
  });
  const json = parse(await text(reply));
  const status = reply.statusCode ?? 0;
  if (status >= 200 && status <= 299) return json;
  const problem = isObject(json) && isObject(json['error']) ? json['error'] : {};
  const { code, message } = problem;
  throw new SvcSessionError(
    typeof code === 'string' ? code : 'failed',
    typeof message === 'string' ? message : `the sidecar answered ${status}`,
  );
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function textField(reply: unknown, name: string): string {
  const value = isObject(reply) ? reply[name] : undefined;
  if (typeof value === 'string') return value;
  throw new SvcSessionError(
    'failed',
    `the sidecar's reply has no ${name}: use the svc/session of the version that runs`,
  );
}

function sentinelsOf(reply: unknown): readonly { readonly env: string; readonly value: string }[] {
  const all = isObject(reply) ? reply['sentinels'] : undefined;
  if (!Array.isArray(all)) return [];
  return all.map((each: unknown) => ({ env: textField(each, 'env'), value: textField(each, 'value') }));
}

/** Google's libraries send no token, and no listener answers this session alone: they have no variables. */
function sdkEndpointsOf(reply: unknown): readonly SdkEndpoint[] {
  const all = isObject(reply) ? reply['sdk_endpoints'] : undefined;
  return Array.isArray(all) ? SDK_ENDPOINTS.filter((sdk) => all.includes(sdk)) : [];
}
