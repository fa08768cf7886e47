import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '../../shared/wire/ids.ts';
import type { PlanLockPayload } from '../../shared/wire/plan/plan_lock.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { LiveSession, SessionDirectory } from '../ports.ts';
import type { SessionCa } from '../tls/session_ca.ts';
import { caBundle } from './ca_bundle.ts';
import { CONTAINER_FILE, removeAllBut, writeContainerRecord } from './container_record.ts';
import { waitAtMost } from './open_tunnels.ts';
import { isRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { reapLeftOvers } from './reaper.ts';
import type { Sandbox, UnsealedCredential } from './sandbox.ts';
import { Session } from './session.ts';
import type { SessionContainers } from './session_containers.ts';
import { newToken, tokenHash } from './token.ts';

export interface SessionsOptions {
  /** `$SVC_HOME/sessions`. */
  readonly directory: string;
  readonly clock: Clock;
  readonly maxTunnelsPerSession: number;
  /** Creates a session's CA and its files in `directory`. */
  readonly createCa: (directory: string, sessionId: string) => Promise<SessionCa>;
  /** PEM of the roots for a session's bundle. */
  readonly systemRoots: () => string;
  /** Null if no session has a container. */
  readonly containers?: Pick<SessionContainers, 'removeOf' | 'removeOrphans'> | null;
  readonly isRunning?: (known: ProcessIdentity) => boolean;
}

export interface NewSession {
  readonly name: string | null;
  readonly ttlSeconds: number;
  readonly owner?: ProcessIdentity | null;
  readonly sandbox?: Sandbox | null;
  readonly unsealed?: readonly UnsealedCredential[];
  /** Ids of the MCP servers that its token may use. */
  readonly mcpServers?: readonly string[];
  /** Set for a plan: then the session has no token of its own. */
  readonly lock?: PlanLockPayload | null;
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

/**
 * The live sessions. They are in memory only: a session does not outlive the sidecar, and the next start removes what a
 * crash leaves on disk and at the container engine.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #live = new Map<string, Session>();
  /** Ended, but their container is kept: for its logs, or for the program that launched it. */
  readonly #kept = new Map<string, Session>();
  readonly #ended = new Set<string>();
  #sweeper: NodeJS.Timeout | null = null;
  #systemRoots: string | null = null;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Of live sessions. */
  get count(): number {
    return this.#live.size;
  }

  /** Removes what dead sessions left behind, and starts to end expired sessions. */
  async start(): Promise<void> {
    const { directory, containers = null } = this.#options;
    const reaped = await reapLeftOvers({ directory, containers, isLive: (id) => this.#live.has(id) });
    await waitAtMost(reaped.containers, ENGINE_MS);
    this.#sweeper = setInterval(() => void this.sweep(), SWEEP_MS).unref();
  }

  /** Ends every session, and removes its container. */
  async stop(): Promise<void> {
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    const ends = [...this.#live.keys(), ...this.#kept.keys()].map((id) => this.end(id));
    await waitAtMost(Promise.all(ends), ENGINE_MS);
  }

  async create(wanted: NewSession): Promise<CreatedSession> {
    const { clock, createCa } = this.#options;
    const now = clock.now();
    const id = newId('ses', randomBytes(16), now);
    const { name, owner = null, sandbox = null, unsealed = [], mcpServers = [], lock = null } = wanted;
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
        token,
        directory,
        ca,
        name,
        owner,
        sandbox,
        unsealed,
        mcpServers,
        lock,
        createdAt: now,
        expiresAt: now + wanted.ttlSeconds * 1000,
        maxTunnels: this.#options.maxTunnelsPerSession,
      });
      await writeFile(session.caBundlePath, caBundle(this.#roots(), ca.caPem), { mode: 0o644 });
      this.#live.set(id, session);
      return { session, token };
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** What this session id and token open now: the session, or the scope of one of its steps; else null. */
  authenticate(sessionId: string, token: string): LiveSession | null {
    const session = this.get(sessionId);
    if (session === null) return null;
    const hash = tokenHash(token);
    return session.holdsTokenOf(hash) ? session : session.scopeOf(hash, this.#options.clock.now());
  }

  /** The live session of a token that comes without its id. A scope's token has none. */
  withToken(token: string): Session | null {
    const hash = tokenHash(token);
    return this.list().find((session) => session.holdsTokenOf(hash)) ?? null;
  }

  /** A live session. */
  get(sessionId: string): Session | null {
    const session = this.#live.get(sessionId);
    return session !== undefined && this.#options.clock.now() < session.expiresAt ? session : null;
  }

  /** A session that is live, or whose container still exists. */
  find(sessionId: string): Session | null {
    return this.get(sessionId) ?? this.#kept.get(sessionId) ?? null;
  }

  /** Live sessions, oldest first. */
  list(): readonly Session[] {
    const now = this.#options.clock.now();
    return [...this.#live.values()].filter((session) => now < session.expiresAt);
  }

  /** Ended sessions whose container still exists. */
  listKept(): readonly Session[] {
    return [...this.#kept.values()];
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
    await session.end();
    await this.#removeContainer(session);
    return true;
  }

  /** Closes every open tunnel. The sessions continue, and new tunnels are decided by the new policy. */
  async closeTunnels(): Promise<void> {
    await Promise.all([...this.#live.values()].map((session) => session.closeTunnels()));
  }

  /** Ends sessions that have expired or whose process has exited. */
  async sweep(): Promise<void> {
    const all = [...this.#live.values(), ...this.#kept.values()];
    await Promise.all(all.map((session) => this.#sweepOne(session)));
  }

  async #sweepOne(session: Session): Promise<void> {
    const { isRunning: runs = isRunning, clock } = this.#options;
    const { id, expiresAt, owner, container, ended } = session;
    if (clock.now() >= expiresAt || (owner !== null && !runs(owner))) await this.end(id);
    else if (!ended && container !== null && !runs(container)) await this.#containerEnded(session);
    else await session.endScopesOver(clock.now());
  }

  /** The session ends with its container, but its launcher may still want the container's logs or files. */
  async #containerEnded(session: Session): Promise<void> {
    this.#live.delete(session.id);
    this.#kept.set(session.id, session);
    await session.end();
    await removeAllBut(session.directory, CONTAINER_FILE);
  }

  /** A folder whose container could not be removed keeps the container's record for the next start. */
  async #removeContainer({ id, sandbox, directory }: Session): Promise<void> {
    const { containers = null } = this.#options;
    const removed = sandbox === null || containers === null || (await containers.removeOf(id, sandbox.runtime));
    if (removed) await rm(directory, { recursive: true, force: true });
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
