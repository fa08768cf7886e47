import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { UnstampedEvent } from '../../shared/audit/exchange_event.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { isSurelyRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { writePrivateFile } from '../../machine/state_file.ts';
import type { SessionSeal } from '../control/session_seal.ts';
import type { SessionCa } from '../tls/session_ca.ts';
import { SESSION_NAME } from './reaper.ts';
import { readSessionFile, type SavedSession, SESSION_FILE, type SessionFileProblem, toSaved } from './saved_session.ts';
import { Session } from './session.ts';

export interface SessionKeeperOptions {
  /** `$SVC_HOME/sessions`. */
  readonly directory: string;
  readonly clock: Clock;
  readonly seal: SessionSeal;
  readonly bootId: string | null;
  readonly uid: number | null;
  /** The sidecar's own port; 0 while it is not known. */
  readonly proxyPort: () => number;
  readonly openCa: (directory: string, sessionId: string, digest: string) => Promise<SessionCa | null>;
  readonly maxTunnelsPerSession: number;
  readonly isSurelyRunning?: (known: ProcessIdentity) => boolean;
  readonly warn: (message: string) => void;
}

/** Why a session of an earlier run is not restored. */
type NotRestoredReason =
  | SessionFileProblem
  | 'session_file_foreign'
  | 'session_expired'
  | 'launcher_ended'
  | 'container_ended'
  | 'proxy_moved'
  | 'session_ca_unusable';

/** These say that somebody has changed files of the state directory. The others are how sessions end. */
export const SUSPICIOUS: ReadonlySet<NotRestoredReason> = new Set([
  'session_file_exposed',
  'session_file_foreign',
  'session_ca_unusable',
]);

/** The audit event for a session that continues after a restart of the sidecar. */
export function restoredEvent({ id, sandbox, hostSandbox }: Session): UnstampedEvent {
  return {
    type: 'sandbox.proxy.session_restored',
    session_id: id,
    actor: null,
    data: {
      'svc.sandbox.mode': sandbox?.mode ?? hostSandbox?.mode ?? 'none',
      ...(sandbox !== null && { 'svc.sandbox.image': sandbox.image }),
    },
  };
}

/** The audit event for a session that should have continued. */
export function notRestoredEvent(sessionId: string, reason: string): UnstampedEvent {
  return {
    type: 'sandbox.proxy.session_not_restored',
    session_id: sessionId,
    actor: null,
    data: { 'svc.proxy.reason': reason },
  };
}

/** Each needs open files, and their number is limited: a file that cannot be opened is not restored. */
const RESTORED_AT_ONCE = 16;

/** What became of the sessions of an earlier run. */
export interface Restored {
  readonly sessions: readonly Session[];
  readonly refused: readonly { readonly sessionId: string; readonly reason: NotRestoredReason }[];
}

/**
 * Saves live sessions on disk and restores them after a restart (docs/decisions/0059). Nothing that a caller says takes part
 * in it: a session comes back only from a file that this sidecar has signed, and only while the very processes run that it
 * belongs to.
 */
export class SessionKeeper {
  readonly #options: SessionKeeperOptions;
  /** The last write or removal of each session. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #saved = new Set<string>();
  readonly #forgotten = new WeakSet<Session>();

  constructor(options: SessionKeeperOptions) {
    this.#options = options;
  }

  /** Whether the next run can restore the session. */
  isSaved({ id }: Session): boolean {
    return this.#saved.has(id);
  }

  /** Saves what the session is now. If that fails, no older state of it stays behind. Never rejects. */
  save(session: Session): Promise<void> {
    return this.#inTurn(session.id, () => this.#write(session));
  }

  /** Removes the file. The session is never saved again. */
  forget(session: Session): Promise<void> {
    this.#forgotten.add(session);
    return this.#inTurn(session.id, () => this.#remove(session));
  }

  /** Restores each session whose file, processes and CA are in order. */
  async restoreAll(): Promise<Restored> {
    const names = (await readdir(this.#options.directory).catch(() => [])).filter((name) => SESSION_NAME.test(name));
    const all: { readonly sessionId: string; readonly restored: Result<Session, NotRestoredReason> }[] = [];
    for (let done = 0; done < names.length; done += RESTORED_AT_ONCE) {
      const some = names.slice(done, done + RESTORED_AT_ONCE);
      const restored = some.map(async (sessionId) => ({ sessionId, restored: await this.#restore(sessionId) }));
      all.push(...(await Promise.all(restored)));
    }
    const sessions = all.flatMap(({ restored }) => (restored.ok ? [restored.value] : []));
    for (const session of sessions) this.#saved.add(session.id);
    return {
      sessions: sessions.toSorted((a, b) => a.createdAt - b.createdAt),
      refused: all.flatMap(({ sessionId, restored }) => (restored.ok ? [] : [{ sessionId, reason: restored.error }])),
    };
  }

  async #restore(sessionId: string): Promise<Result<Session, NotRestoredReason>> {
    const { seal, uid, openCa, maxTunnelsPerSession } = this.#options;
    const directory = join(this.#options.directory, sessionId);
    const text = await readSessionFile(directory, uid);
    if (!text.ok) return text;
    const saved = await seal.open(text.value);
    if (saved === null || saved.sessionId !== sessionId) return err('session_file_foreign');
    const over = this.#whyOver(saved);
    if (over !== null) return err(over);
    const ca = await openCa(directory, sessionId, saved.caDigest).catch(() => null);
    if (ca === null) return err('session_ca_unusable');
    const session = new Session({
      ...saved,
      scopes: saved.scopes ?? [],
      limits: saved.limits ?? {},
      id: sessionId,
      directory,
      ca,
      lock: null,
      selfTest: false,
      tokenHash: Buffer.from(saved.tokenHash, 'hex'),
      maxTunnels: maxTunnelsPerSession,
    });
    session.paused = saved.paused;
    session.containerId = saved.container?.id ?? null;
    session.container = saved.container?.process ?? null;
    session.listener = saved.container?.listener ?? null;
    return ok(session);
  }

  /** Whether what the session belongs to is gone. */
  #whyOver({ bootId, renews, expiresAt, owner, container, proxyPort }: SavedSession): NotRestoredReason | null {
    const { clock, isSurelyRunning: runs = isSurelyRunning } = this.#options;
    if (bootId !== this.#options.bootId) return 'launcher_ended';
    if (!renews && clock.now() >= expiresAt) return 'session_expired';
    if (owner !== null && !runs(owner)) return 'launcher_ended';
    if (container !== null && container.listener.listener !== 'namespace') return 'proxy_moved';
    // In a virtual machine: the engine is asked when the listener is opened again.
    if (container?.process === null) return null;
    if (container !== null) return runs(container.process) ? null : 'container_ended';
    if (owner === null) return 'launcher_ended';
    return proxyPort === this.#options.proxyPort() ? null : 'proxy_moved';
  }

  #inTurn(sessionId: string, work: () => Promise<void>): Promise<void> {
    const before = this.#turns.get(sessionId) ?? Promise.resolve();
    // One that fails does not stop the next one.
    const turn = before.then(work, work).finally(() => {
      if (this.#turns.get(sessionId) === turn) this.#turns.delete(sessionId);
    });
    this.#turns.set(sessionId, turn);
    return turn;
  }

  async #write(session: Session): Promise<void> {
    const { seal, bootId, proxyPort, warn } = this.#options;
    if (this.#forgotten.has(session) || session.ended) return;
    const saved = toSaved(session, { sidecarId: seal.sidecarId, bootId, proxyPort: proxyPort() });
    if (saved === null) return;
    try {
      await writePrivateFile(join(session.directory, SESSION_FILE), await seal.seal(saved));
      this.#saved.add(session.id);
    } catch (error) {
      warn(`Session ${session.id} could not be saved, so it ends with this run of the sidecar: ${String(error)}`);
      await this.#remove(session).catch((why: unknown) => {
        warn(`An older state of session ${session.id} could not be removed: ${String(why)}`);
      });
    }
  }

  async #remove({ id, directory }: Session): Promise<void> {
    this.#saved.delete(id);
    await rm(join(directory, SESSION_FILE), { recursive: true, force: true });
  }
}
