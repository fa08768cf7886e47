import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '../../shared/wire/ids.ts';
import type { Clock } from '../ports.ts';
import type { SessionCa } from '../tls/session_ca.ts';
import { caBundle } from './ca_bundle.ts';

export interface SessionsOptions {
  /** `$SVC_HOME/sessions`. */
  readonly directory: string;
  readonly clock: Clock;
  readonly maxTunnelsPerSession: number;
  /** Makes a session's CA and its files in `directory`. */
  readonly createCa: (directory: string, sessionId: string) => Promise<SessionCa>;
  /** PEM of the roots that go into a session's bundle. */
  readonly systemRoots: () => string;
}

export interface NewSession {
  readonly name: string | null;
  readonly ttlSeconds: number;
}

/** A session and its token, which is told once and kept only as a hash. */
export interface CreatedSession {
  readonly session: Session;
  readonly token: string;
}

/** Ends a tunnel; resolves when what it had to record is recorded. */
export type CloseTunnel = () => void | Promise<void>;

const SWEEP_MS = 10_000;
const CLOSE_TUNNELS_MS = 1_000;
const SESSION_NAME = /^ses_[0-9a-z]{26}$/;

/** One launch: its token opens the proxy until it ends or its time is up. */
export class Session {
  readonly id: string;
  readonly name: string | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly ca: SessionCa;
  readonly directory: string;
  readonly #tokenHash: Buffer;
  readonly #maxTunnels: number;
  readonly #tunnels = new Set<CloseTunnel>();
  #ended = false;

  constructor(facts: SessionFacts) {
    this.id = facts.id;
    this.name = facts.name;
    this.createdAt = facts.createdAt;
    this.expiresAt = facts.expiresAt;
    this.ca = facts.ca;
    this.directory = facts.directory;
    this.#tokenHash = sha256(facts.token);
    this.#maxTunnels = facts.maxTunnels;
  }

  get caPemPath(): string {
    return this.ca.caPemPath;
  }

  get caBundlePath(): string {
    return join(this.directory, 'bundle.pem');
  }

  get openTunnels(): number {
    return this.#tunnels.size;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Compares in constant time. */
  holdsToken(token: string): boolean {
    return this.holdsTokenOf(sha256(token));
  }

  /** The same for the SHA-256 of a token. */
  holdsTokenOf(hash: Buffer): boolean {
    return timingSafeEqual(this.#tokenHash, hash);
  }

  /** Counts a tunnel in until the returned function is called; null when the session has as many as it may, or has ended. */
  openTunnel(close: CloseTunnel): (() => void) | null {
    if (this.#ended || this.#tunnels.size >= this.#maxTunnels) return null;
    const tunnel: CloseTunnel = () => close();
    this.#tunnels.add(tunnel);
    return () => this.#tunnels.delete(tunnel);
  }

  /** Closes every tunnel and forgets the CA. Waits for the tunnels, but not for long. */
  async end(): Promise<void> {
    this.#ended = true;
    const closing = Promise.allSettled([...this.#tunnels].map(async (close) => close()));
    await within(closing, CLOSE_TUNNELS_MS);
    this.#tunnels.clear();
    await this.ca.dispose();
    await rm(this.directory, { recursive: true, force: true });
  }
}

interface SessionFacts {
  readonly id: string;
  readonly name: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly ca: SessionCa;
  readonly directory: string;
  readonly token: string;
  readonly maxTunnels: number;
}

/** The live sessions. They are in memory only: a session does not outlive the sidecar. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  #sweeper: NodeJS.Timeout | null = null;
  #systemRoots: string | null = null;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** Removes what dead sessions left behind, and begins to end sessions whose time is up. */
  async start(): Promise<void> {
    await removeLeftOvers(this.#options.directory);
    this.#sweeper = setInterval(() => void this.endExpired(), SWEEP_MS).unref();
  }

  /** Ends every session. */
  async stop(): Promise<void> {
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    await Promise.all([...this.#sessions.keys()].map((id) => this.end(id)));
  }

  async create(wanted: NewSession): Promise<CreatedSession> {
    const { clock, createCa } = this.#options;
    const now = clock.now();
    const id = newId('ses', randomBytes(16), now);
    const token = `svc_session_${randomBytes(32).toString('base64url')}`;
    const directory = join(this.#options.directory, id);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    try {
      const ca = await createCa(directory, id);
      const facts = { id, token, directory, ca, name: wanted.name, createdAt: now };
      const session = new Session({
        ...facts,
        expiresAt: now + wanted.ttlSeconds * 1000,
        maxTunnels: this.#options.maxTunnelsPerSession,
      });
      await writeFile(session.caBundlePath, caBundle(this.#roots(), ca.caPem), { mode: 0o644 });
      this.#sessions.set(id, session);
      return { session, token };
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** The live session that this id and token open; null for anything else. */
  authenticate(sessionId: string, token: string): Session | null {
    const session = this.get(sessionId);
    return session !== null && session.holdsToken(token) ? session : null;
  }

  /** The live session of a token that comes without its id. */
  withToken(token: string): Session | null {
    const hash = sha256(token);
    return this.list().find((session) => session.holdsTokenOf(hash)) ?? null;
  }

  get(sessionId: string): Session | null {
    const session = this.#sessions.get(sessionId);
    return session !== undefined && this.#options.clock.now() < session.expiresAt ? session : null;
  }

  /** Oldest first. */
  list(): readonly Session[] {
    const now = this.#options.clock.now();
    return [...this.#sessions.values()].filter((session) => now < session.expiresAt);
  }

  /** False when there is no such session. */
  async end(sessionId: string): Promise<boolean> {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return false;
    this.#sessions.delete(sessionId);
    await session.end();
    return true;
  }

  async endExpired(): Promise<void> {
    const now = this.#options.clock.now();
    const expired = [...this.#sessions.values()].filter((session) => now >= session.expiresAt);
    await Promise.all(expired.map((session) => this.end(session.id)));
  }

  #roots(): string {
    this.#systemRoots ??= this.#options.systemRoots();
    return this.#systemRoots;
  }
}

async function removeLeftOvers(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = await readdir(directory);
  const dead = names.filter((name) => SESSION_NAME.test(name));
  await Promise.all(dead.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

async function within(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
