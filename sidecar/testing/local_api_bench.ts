import { borrowSample } from './borrow_sample.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { type ApiLimits, DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { compilePolicy } from '../../shared/resolve/resolve.ts';
import type { OperationRunner, RunResult } from '../connector/operation_runner.ts';
import type { SessionScopes } from '../ports.ts';
import type { RunCaller } from '../connector/run_ports.ts';
import type { AuditMismatch } from '../control/audit_witness.ts';
import { channelFailure, type ChannelFailure } from '../control/channel_failure.ts';
import type { OpenLogin, UnsealedRequest } from '../control/control_channel.ts';
import { MaskedReplies } from '../exchange/masked_replies.ts';
import { Link } from '../control/link.ts';
import { createPlanLocks } from '../control/plan_locks.ts';
import { createContainerApi, createLocalApi } from '../local_api/app.ts';
import type { LocalApiOptions } from '../local_api/local_api_options.ts';
import { MetricsRegistry } from '../local_api/metrics.ts';
import type { SessionListener } from '../reach/session_listeners.ts';
import type { Session } from '../session/session.ts';
import { Sessions } from '../session/sessions.ts';
import { fakeSessionCa } from './fake_session_ca.ts';
import { FakeAuditSink, FakeClock } from './fakes.ts';
import { sampleIdentity } from './sample_identity.ts';
import { PINNED_IMAGE } from './sample_plan_lock.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ReachFailureReason } from '../reach/reach_failure.ts';

export const HOST_TOKEN = `svc_host_${'h'.repeat(43)}`;

/** A reply of the API: its status and error code (or '' for a success), and its body. */
export interface ApiReply {
  readonly status: number;
  readonly code: string;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly etag: string;
}

const errorBody = z.object({ error: z.object({ code: z.string() }) });
const anyBody = z.record(z.string(), z.unknown());

/** The local API on real sessions, with fakes behind its other ports. */
export class LocalApiBench {
  readonly home: string;
  readonly clock = new FakeClock();
  readonly sink = new FakeAuditSink();
  readonly sessions: Sessions;
  readonly options: LocalApiOptions;
  /** How often events were flushed. */
  flushed = 0;
  readonly asked: UnsealedRequest[] = [];
  released: Result<Secret, Refusal> = err(refusal('credential_unavailable', 'not stored'));
  listener: Result<SessionListener, Failure<ReachFailureReason>> = ok({
    listener: 'namespace',
    address: '127.0.0.1',
    port: 7421,
  });
  inVirtualMachine: Result<boolean, Failure<ReachFailureReason>> = ok(false);
  /** The result of opening a listener; `pids` are the requested ones. */
  opening: Result<SessionListener, Failure<ReachFailureReason>> = this.listener;
  readonly pids: number[] = [];
  /** The requested runs of operations, and their callers. */
  readonly runs: { readonly request: object; readonly caller: RunCaller }[] = [];
  running: (caller: RunCaller) => Promise<RunResult> = () =>
    Promise.resolve(err({ reason: 'connector_operation_not_found', message: 'none is installed' }));
  readonly operations: OperationRunner = {
    run: (asked, caller) => this.#recordRun(asked, caller),
    request: (asked, caller) => this.#recordRun(asked, caller),
  };
  policy: ReturnType<LocalApiOptions['policy']['current']> = ok(compilePolicy([]));
  readonly masked = new MaskedReplies(2, (id) => this.sessions.get(id) !== null);
  bindings: readonly HostBinding[] = [];
  policyVersion = 7;
  isStored = true;
  /** What a session that narrows its secrets is given. */
  scopedSources: SessionScopes['of'] = () => ({
    resolve: () => err(refusal('credential_unavailable', 'it cannot be narrowed')),
    isStored: () => this.isStored,
    findStoredVersion: () => null,
  });
  /** No chain was rolled back, unless a test sets it. */
  readonly witness: LocalApiOptions['witness'] & { mismatches: AuditMismatch[] } = {
    heads: [],
    mismatches: [],
    isKept: true,
    accept: (writer) => {
      const found = this.witness.mismatches.findIndex((mismatch) => mismatch.writer === writer);
      if (found === -1) return Promise.resolve(err('no_mismatch' as const));
      this.witness.mismatches.splice(found, 1);
      return Promise.resolve(ok(undefined));
    },
  };
  mcpServers: ReturnType<LocalApiOptions['policy']['mcpServers']> = [];
  #policyChanged = new AbortController();
  readonly #api: ReturnType<typeof createLocalApi>;

  private constructor(home: string, planLocks: LocalApiOptions['planLocks'], limits: ApiLimits) {
    this.home = home;
    this.sessions = new Sessions({
      directory: join(home, 'sessions'),
      clock: this.clock,
      maxTunnelsPerSession: 5,
      createCa: (directory) => fakeSessionCa(directory),
      systemRoots: () => '',
    });
    this.options = { ...this.#optionsWith(planLocks), limits };
    this.#api = createLocalApi(this.options);
  }

  static async start(limits: Partial<ApiLimits> = {}): Promise<LocalApiBench> {
    const identity = await sampleIdentity();
    const home = await mkdtemp(join(tmpdir(), 'svc-local-api-'));
    return new LocalApiBench(home, createPlanLocks(identity, new FakeClock()), { ...DEFAULT_LIMITS, ...limits });
  }

  async stop(): Promise<void> {
    await this.sessions.stop();
    await rm(this.home, { recursive: true });
  }

  /** Calls with a token (by default the host's), or with none for null. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    token: string | null = HOST_TOKEN,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ApiReply> {
    return replyOf(await this.#api.request(request(method, path, body, token, headers)));
  }

  /** The same from inside a session's container. */
  async callFromContainer(session: Session, path: string, token: string, body?: unknown): Promise<ApiReply> {
    const api = createContainerApi(this.options, { session, hostNames: [] });
    return replyOf(await api.request(request(body === undefined ? 'GET' : 'POST', path, body, token)));
  }

  /** A session created by the API: its id, and its token or ''. */
  async createSession(
    body: object = {},
  ): Promise<{ readonly id: string; readonly token: string; readonly body: object }> {
    const reply = await this.call('POST', '/v1/sandbox-proxy/sessions', body);
    if (reply.status !== 201) throw new Error(`no session: ${reply.text}`);
    const { session_id: id, token = '' } = reply.body;
    return { id: String(id), token: String(token), body: reply.body };
  }

  /** Puts a newer policy with these connectors in force. */
  useConnectors(connectors: readonly InstalledConnector[]): void {
    this.policy = ok(compilePolicy([], connectors));
    this.policyVersion += 1;
    this.#policyChanged.abort();
    this.#policyChanged = new AbortController();
  }

  #waitForChange(version: number | null, signal: AbortSignal): Promise<void> {
    if (version !== this.policyVersion || signal.aborted) return Promise.resolve();
    const either = AbortSignal.any([signal, this.#policyChanged.signal]);
    return new Promise((resolve) => either.addEventListener('abort', () => resolve()));
  }

  /** The login that is open, and what storing its tokens gives. */
  openLogin: Result<OpenLogin, ChannelFailure> = err(channelFailure('refused', 'there is none', { status: 404 }));
  readonly logins: LocalApiOptions['logins'] = {
    fetchLogin: () => Promise.resolve(this.openLogin),
    holdLogin: () => Promise.resolve(ok(undefined)),
  };

  #recordRun(asked: object, caller: RunCaller): Promise<RunResult> {
    this.runs.push({ request: asked, caller });
    return this.running(caller);
  }

  #optionsWith(planLocks: LocalApiOptions['planLocks']): Omit<LocalApiOptions, 'limits'> {
    const { sink } = this;
    return {
      logins: this.logins,
      version: '4.0.0',
      borrow: borrowSample(this.home),
      hostToken: HOST_TOKEN,
      proxyOrigin: () => 'http://127.0.0.1:9100',
      policy: {
        current: () => this.policy,
        bindings: () => this.bindings,
        status: () => ({ version: this.policyVersion, ageSeconds: 3 }),
        waitForVersion: (version) => Promise.resolve(ok(version)),
        mcpServers: () => this.mcpServers,
        waitForChange: (version, _timeoutMs, signal) => this.#waitForChange(version, signal),
      },
      credentials: { isStored: () => this.isStored },
      scopes: { of: (sessionId) => this.scopedSources(sessionId) },
      audit: {
        get accepting() {
          return sink.accepting;
        },
        pending: { bytes: 0, events: 0, dropped: 0 },
        record: (event) => sink.record(event),
        flush: () => {
          this.flushed += 1;
          return Promise.resolve(true);
        },
      },
      witness: this.witness,
      link: new Link(),
      masked: this.masked,
      sessions: this.sessions,
      listeners: {
        openSocket: () => Promise.resolve(ok(undefined)),
        planFor: () => Promise.resolve(this.listener),
        isInVirtualMachine: () => Promise.resolve(this.inVirtualMachine),
        open: (_session, pid) => {
          this.pids.push(pid);
          return Promise.resolve(this.opening);
        },
      },
      planLocks,
      operations: this.operations,
      releaseUnsealed: (wanted) => {
        this.asked.push(wanted);
        return Promise.resolve(this.released);
      },
      clock: this.clock,
      metrics: new MetricsRegistry(),
      warn: () => undefined,
    };
  }
}

/** A valid sandbox; change one thing at a time. */
export function sandboxInput(change: object = {}): object {
  return {
    mode: 'docker',
    image: 'agent-tools:1',
    image_id: PINNED_IMAGE,
    runtime: { program: 'docker', endpoint: 'unix:///var/run/docker.sock' },
    detached: false,
    egress: 'open',
    ...change,
  };
}

function request(
  method: string,
  path: string,
  body: unknown,
  token: string | null,
  more: Readonly<Record<string, string>> = {},
): Request {
  const headers = new Headers({ host: '127.0.0.1:9100', ...more });
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new Request(`http://127.0.0.1:9100${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: text }),
  });
}

async function replyOf(response: Response): Promise<ApiReply> {
  const text = await response.text();
  const json: unknown = text === '' ? {} : JSON.parse(text);
  const code = errorBody.safeParse(json).data?.error.code ?? '';
  return { status: response.status, code, body: anyBody.parse(json), text, etag: response.headers.get('etag') ?? '' };
}
