import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '../../shared/wire/ids.ts';
import type { PlanLockPayload } from '../../shared/wire/plan/plan_lock.ts';
import type { StepScope } from './step_scope.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { AllowList } from '../../shared/model/egress.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { LiveSession, ServedServer, SessionDirectory } from '../ports.ts';
import type { SessionCa } from '../tls/session_ca.ts';
import { caBundle } from './ca_bundle.ts';
import { CONTAINER_FILE, removeAllBut, writeContainerRecord } from './container_record.ts';
import { waitAtMost } from './open_tunnels.ts';
import { isRunningByPoll, type ProcessIdentity } from '../../machine/process_identity.ts';
import { reapLeftOvers } from './reaper.ts';
import type { HostSandbox, PausedUse, Sandbox, UnsealedCredential } from './sandbox.ts';
import { Session } from './session.ts';
import type { Restored, SessionKeeper } from './session_keeper.ts';
import type { CapturedLogin } from './session_login.ts';
import type { SessionContainers } from './session_containers.ts';
import { newToken, tokenHash } from './token.ts';

interface SessionsOptions {
  /** `$SVC_HOME/sessions`. */
  readonly directory: string;
  readonly clock: Clock;
  readonly maxTunnelsPerSession: number;
  /** Creates a session's CA and its files in `directory`. */
  readonly createCa: (directory: string, sessionId: string) => Promise<SessionCa>;
  /** PEM of the roots for a session's bundle. */
  readonly systemRoots: () => string;
  /** Null if no session has a container. */
  readonly containers?: Pick<SessionContainers, 'removeOf' | 'removeOne' | 'removeOrphans'> | null;
  readonly isRunning?: (known: ProcessIdentity) => boolean;
  /** Saves sessions for the next run; null if they end with this one. */
  readonly keeper?: SessionKeeper | null;
  readonly warn?: (message: string) => void;
  /** Called when a session has ended and its tunnels are closed. */
  readonly onClosed?: (sessionId: string) => void;
}

export interface NewSession {
  readonly name: string | null;
  readonly folder?: string | null;
  /** Null: as long as its owner runs; without an owner, or for a detached container, for a day. */
  readonly ttlSeconds: number | null;
  readonly owner?: ProcessIdentity | null;
  readonly sandbox?: Sandbox | null;
  readonly hostSandbox?: HostSandbox | null;
  /** The hosts that it may reach besides bound ones and those of active connectors; null: no limit of its own. */
  readonly allowList?: AllowList | null;
  /** The hosts that it may send plain requests to; null: none. */
  readonly plainHttp?: AllowList | null;
  readonly otherPorts?: AllowList | null;
  /** True: it reaches nothing, and the sidecar answers its probes itself. It ends with the sidecar. */
  readonly selfTest?: boolean;
  /** Which account it uses where a host has several; null: the request alone decides. */
  readonly choice?: AccountChoice | null;
  readonly scopes?: readonly SecretScope[];
  /** How many of its requests may get a credential; absent: any number. */
  readonly limits?: RequestLimits;
  readonly unsealed?: readonly UnsealedCredential[];
  /** Ids of the MCP servers that its token may use; null: every one. */
  readonly mcpServers?: readonly string[] | null;
  /** Set for a plan: then the session has no token of its own. */
  readonly lock?: PlanLockPayload | null;
  /** Set for the session of `svc login`. It ends with the sidecar. */
  readonly login?: CapturedLogin | null;
  /** Set for the container of an MCP server. It ends with the sidecar, and the gateway starts the server again. */
  readonly mcpServer?: ServedServer | null;
}

/** A session and its token. The token is returned once and kept only as a hash; a plan's session has none. */
export interface CreatedSession {
  readonly session: Session;
  readonly token: string | null;
}

const SWEEP_MS = 500;
/** How long a start and a stop wait for an engine to remove containers. The next start does the rest. */
const ENGINE_MS = 5_000;
/** How many ended sessions are remembered, so that ending one that has just ended by itself is not an error. */
const MAX_REMEMBERED = 1_000;
/** Some reasons hold a text of their own. A session with more is one whose reasons are not known. */
const MAX_REASONS = 100;

/** How long a session without an owner lives, and how far ahead the end of one with an owner is shown. */
const DAY_MS = 24 * 3_600_000;

/**
 * The live sessions. The keeper saves those that the next run of the sidecar may restore. Of every other session, the next
 * start removes what is left on disk and at the container engine.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #live = new Map<string, Session>();
  /** Ended, but their container is kept: for its logs, or for the program that launched it. */
  readonly #kept = new Map<string, Session>();
  readonly #ended = new Set<string>();
  /** Those whose requests and events may still come: also while they end. */
  readonly #noted = new Map<string, Session>();
  readonly #logins = new Set<string>();
  #sweeper: NodeJS.Timeout | null = null;
  #systemRoots: string | null = null;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Of live sessions. */
  get count(): number {
    return this.#live.size;
  }

  /** Restores saved sessions, removes what dead ones left behind, and starts to end expired sessions. */
  async start(): Promise<Restored> {
    const { directory, containers = null, keeper = null, clock } = this.#options;
    const restored = (await keeper?.restoreAll()) ?? { sessions: [], refused: [] };
    for (const session of restored.sessions) {
      session.renew(clock.now() + DAY_MS);
      this.#noted.set(session.id, session);
      this.#live.set(session.id, session);
    }
    const isLive = (id: string): boolean => this.#live.has(id);
    const reaped = await reapLeftOvers({ directory, containers, isLive, warn: (message) => this.#warn(message) });
    await waitAtMost(reaped.containers, ENGINE_MS);
    this.#sweeper = setInterval(() => void this.sweep(), SWEEP_MS).unref();
    return restored;
  }

  /** Closes the saved sessions, which the next run restores. Ends every other one, and removes its container. */
  async stop(): Promise<void> {
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    const { keeper = null } = this.#options;
    const isSaved = (session: Session): boolean => keeper?.isSaved(session) === true;
    const saved = [...this.#live.values()].filter(isSaved);
    const others = [...this.#live.values(), ...this.#kept.values()].filter((session) => !isSaved(session));
    const all = [...saved.map((session) => session.close()), ...others.map(({ id }) => this.end(id))];
    await waitAtMost(this.#tryAll(all), ENGINE_MS);
  }

  /** Saves what a live session is now. */
  async save(session: Session): Promise<void> {
    // Restored, the session of a login would pass its tokens on to the program.
    if (session.login !== null) return;
    if (this.#live.get(session.id) === session) await this.#options.keeper?.save(session);
  }

  /** Notes and saves which bindings are paused for a session. */
  notePaused(sessionId: string, paused: readonly PausedUse[]): void {
    const session = this.#live.get(sessionId);
    if (session === undefined) return;
    session.paused = paused;
    void this.save(session);
  }

  /** Notes the reason of a session's event, so that its launcher need not ask the audit log at the end. */
  noteReason(sessionId: string, reason: string): void {
    const session = this.#noted.get(sessionId);
    const reasons = session?.reasons?.add(reason);
    if (session !== undefined && reasons !== undefined && reasons.size > MAX_REASONS) session.reasons = null;
  }

  /** From now on no session comes back after a restart. The sessions continue. */
  async forgetSaved(): Promise<void> {
    const { keeper = null } = this.#options;
    if (keeper !== null) await this.#tryAll([...this.#live.values()].map((session) => keeper.forget(session)));
  }

  async create(wanted: NewSession): Promise<CreatedSession> {
    const { clock, createCa } = this.#options;
    const now = clock.now();
    const id = newId('ses', randomBytes(16), now);
    const { name, owner = null, sandbox = null, allowList = null } = wanted;
    const { plainHttp = null, otherPorts = null } = wanted;
    const { unsealed = [], mcpServers = [], lock = null, selfTest = false, choice = null, scopes = [] } = wanted;
    const token = lock === null ? newToken('session') : null;
    const directory = join(this.#options.directory, id);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    try {
      if (sandbox !== null) {
        await writeContainerRecord(directory, { sessionId: id, containerId: null, runtime: sandbox.runtime });
      }
      const ca = await createCa(directory, id);
      const session = new Session({
        id,
        tokenHash: token === null ? null : tokenHash(token),
        directory,
        ca,
        name,
        folder: wanted.folder ?? null,
        owner,
        sandbox,
        hostSandbox: wanted.hostSandbox ?? null,
        allowList,
        plainHttp,
        otherPorts,
        selfTest,
        choice,
        scopes,
        limits: wanted.limits ?? {},
        unsealed,
        mcpServers,
        lock,
        login: wanted.login ?? null,
        mcpServer: wanted.mcpServer ?? null,
        createdAt: now,
        expiresAt: now + (wanted.ttlSeconds === null ? DAY_MS : wanted.ttlSeconds * 1000),
        renews: wanted.ttlSeconds === null && owner !== null && sandbox?.detached !== true,
        maxTunnels: this.#options.maxTunnelsPerSession,
      });
      await writeFile(session.caBundlePath, caBundle(this.#roots(), ca.caPem), { mode: 0o644 });
      session.reasons = new Set();
      this.#noted.set(id, session);
      this.#live.set(id, session);
      await this.save(session);
      return { session, token };
    } catch (error) {
      this.#noted.delete(id);
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** True for the first session that is started for a login: no other one captures it. */
  takeLogin(id: string): boolean {
    if (this.#logins.has(id)) return false;
    this.#logins.add(id);
    return true;
  }

  /** What this session id and token open now: the session, or the scope of one of its steps; else null. */
  authenticate(sessionId: string, token: string): LiveSession | null {
    const session = this.get(sessionId);
    if (session === null) return null;
    const hash = tokenHash(token);
    return session.holdsTokenOf(hash) ? session : session.scopeOf(hash, this.#options.clock.now());
  }

  /** The live session of a token that comes without its id. The token of a scope, a self-test or an MCP server opens only the proxy. */
  withToken(token: string): Session | null {
    const hash = tokenHash(token);
    return (
      this.list().find((session) => session.mcpServer === null && !session.selfTest && session.holdsTokenOf(hash)) ??
      null
    );
  }

  /** What a session may do until its last tunnel is closed, also while it ends. Null: it is not known any more. */
  limitsOf(sessionId: string): RequestLimits | null {
    return this.#noted.get(sessionId)?.limits ?? null;
  }

  /** A live session. */
  get(sessionId: string): Session | null {
    const session = this.#live.get(sessionId);
    return session === undefined || session.isOver(this.#options.clock.now()) ? null : session;
  }

  /** A session that is live, or whose container still exists. */
  find(sessionId: string): Session | null {
    return this.get(sessionId) ?? this.#kept.get(sessionId) ?? null;
  }

  /** Live sessions, oldest first. */
  list(): readonly Session[] {
    const now = this.#options.clock.now();
    return [...this.#live.values()].filter((session) => !session.isOver(now));
  }

  /** Ended sessions whose container still exists. */
  listKept(): readonly Session[] {
    return [...this.#kept.values()];
  }

  /** An open scope of any live session. */
  scope(scopeId: string): StepScope | null {
    for (const session of this.#live.values()) {
      const found = session.scope(scopeId);
      if (found !== null) return found;
    }
    return null;
  }

  /** Ends a scope of any session. False if there is no such scope. */
  async endScope(scopeId: string): Promise<boolean> {
    const ended = await Promise.all([...this.#live.values()].map((session) => session.endScope(scopeId)));
    return ended.includes(true);
  }

  /** Ends a session and removes its container and folder. False if no such session is live or has recently ended. */
  async end(sessionId: string): Promise<boolean> {
    const session = this.#live.get(sessionId) ?? this.#kept.get(sessionId);
    if (session === undefined) return this.#ended.has(sessionId);
    this.#live.delete(sessionId);
    this.#kept.delete(sessionId);
    this.#remember(sessionId);
    await this.#close(session, () => this.#removeContainer(session));
    return true;
  }

  /** Closes every open tunnel. The sessions continue, and new tunnels are decided by the new policy. */
  async closeTunnels(): Promise<void> {
    await Promise.all([...this.#live.values()].map((session) => session.closeTunnels()));
  }

  /** Ends sessions that have expired or whose process has exited. */
  async sweep(): Promise<void> {
    const all = [...this.#live.values(), ...this.#kept.values()];
    await this.#tryAll(all.map((session) => this.#sweepOne(session)));
  }

  async #sweepOne(session: Session): Promise<void> {
    const { isRunning: runs = isRunningByPoll, clock } = this.#options;
    const { id, owner, container, containerIsOver, ended } = session;
    const now = clock.now();
    if (session.isOver(now) || (owner !== null && !runs(owner))) return void (await this.end(id));
    if (session.expiresAt - now < DAY_MS / 2) session.renew(now + DAY_MS);
    if (!ended && (containerIsOver || (container !== null && !runs(container)))) await this.#containerEnded(session);
    else await session.endScopesOver(clock.now());
  }

  /** The session ends with its container, but its launcher may still want the container's logs or files. */
  async #containerEnded(session: Session): Promise<void> {
    this.#live.delete(session.id);
    this.#kept.set(session.id, session);
    await this.#close(session, async () => {
      await removeAllBut(session.directory, CONTAINER_FILE);
      await this.#removeCompanion(session);
    });
  }

  /** Takes every step, whatever became of those before. Rejects if some of its files could not be removed. */
  async #close(session: Session, removeRest: () => Promise<void>): Promise<void> {
    // First, so that a crash from here on cannot bring the session back.
    const [forgotten] = await Promise.allSettled([this.#options.keeper?.forget(session)]);
    const [ended] = await Promise.allSettled([session.end()]);
    this.#options.onClosed?.(session.id);
    this.#noted.delete(session.id);
    await removeRest();
    for (const each of [forgotten, ended]) if (each.status === 'rejected') throw each.reason;
  }

  /** Waits for all. A failure is reported and does not end the sidecar. */
  async #tryAll(all: readonly Promise<unknown>[]): Promise<void> {
    for (const each of await Promise.allSettled(all)) {
      if (each.status === 'rejected') this.#warn(`A session's files could not be removed: ${String(each.reason)}`);
    }
  }

  #warn(message: string): void {
    this.#options.warn?.(message);
  }

  /** It would keep the network of a container that has ended. */
  async #removeCompanion({ companion, sandbox }: Session): Promise<void> {
    if (companion !== null && sandbox !== null) {
      await this.#options.containers?.removeOne(companion, sandbox.runtime);
    }
  }

  /** A folder whose container could not be removed keeps the container's record for the next start. */
  async #removeContainer({ id, sandbox, directory }: Session): Promise<void> {
    const { containers = null } = this.#options;
    const removed = sandbox === null || containers === null || (await containers.removeOf(id, sandbox.runtime));
    // A companion that starts at this moment may still put a socket into it.
    if (removed) await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    else await removeAllBut(directory, CONTAINER_FILE);
  }

  #remember(sessionId: string): void {
    this.#ended.add(sessionId);
    const [oldest] = this.#ended;
    if (oldest !== undefined && this.#ended.size > MAX_REMEMBERED) this.#ended.delete(oldest);
  }

  /** Read once: the system's roots do not change at run time. */
  #roots(): string {
    this.#systemRoots ??= this.#options.systemRoots();
    return this.#systemRoots;
  }
}

/** The credentials of one session and its scopes; all other sessions are unknown there. */
export function sessionDirectory(sessions: Pick<Sessions, 'authenticate'>, only: string): SessionDirectory {
  return { authenticate: (sessionId, token) => (sessionId === only ? sessions.authenticate(sessionId, token) : null) };
}

/**
 * The sessions of a listener that every program of the machine, or every container of a bridge, reaches. A container or a sandbox
 * with a listener of its own is unknown there: its token is worth nothing outside of it.
 */
export function sharedDirectory(sessions: Pick<Sessions, 'authenticate' | 'get'>): SessionDirectory {
  return {
    authenticate: (sessionId, token) =>
      isShared(sessions.get(sessionId)) ? sessions.authenticate(sessionId, token) : null,
  };
}

function isShared(session: Session | null): boolean {
  if (session === null || session.hostSandbox !== null) return false;
  return session.sandbox === null || session.listener?.listener === 'gateway';
}
