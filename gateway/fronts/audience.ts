import type { LoggingLevel, LoggingMessageNotificationParams } from '@modelcontextprotocol/server';
import { type Caller, mayUse } from '../../machine/mcp_caller.ts';
import type { ListKind } from './downstream.ts';
import { isLogged, findLeast } from './log_levels.ts';

/** A client that receives notifications outside of its own requests. */
interface Listener {
  readonly key: string;
  readonly caller: Caller;
  logLevel(): LoggingLevel | null;
  listChanged(kind: ListKind): void;
  resourceUpdated(uri: string): void;
  log(message: LoggingMessageNotificationParams): void;
}

/** Changes within this time are sent as one notification. */
const TOGETHER_MS = 100;

/** The connected clients and what each is notified of. A client never hears of a server that it may not use. */
export class Audience {
  readonly #listeners = new Map<string, Listener>();
  /** The kinds of lists that changed, each with the affected servers; null for all. */
  readonly #changed = new Map<ListKind, Set<string> | null>();
  #timer: NodeJS.Timeout | null = null;

  add(listener: Listener): void {
    this.#listeners.set(listener.key, listener);
  }

  remove(key: string): void {
    this.#listeners.delete(key);
  }

  find(key: string): Listener | null {
    return this.#listeners.get(key) ?? null;
  }

  /** The lists of a server, or of all (null), have changed. */
  listChanged(kind: ListKind, serverId: string | null): void {
    const servers = this.#changed.get(kind);
    if (serverId === null) this.#changed.set(kind, null);
    else if (servers === undefined) this.#changed.set(kind, new Set([serverId]));
    else servers?.add(serverId);
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#tell(), TOGETHER_MS);
    this.#timer.unref();
  }

  /** A message that belongs to no call. It is sent only if there is exactly one client and it may use the server. */
  log(serverId: string, message: LoggingMessageNotificationParams): void {
    const [only, ...others] = this.#listeners.values();
    if (only === undefined || others.length > 0 || !mayUse(only.caller, serverId)) return;
    if (isLogged(message.level, only.logLevel())) only.log(message);
  }

  /** The lowest severity that any client wants. */
  findLeastLogLevel(): LoggingLevel | null {
    return findLeast(Array.from(this.#listeners.values(), (listener) => listener.logLevel()));
  }

  #tell(): void {
    this.#timer = null;
    const changes = [...this.#changed];
    this.#changed.clear();
    for (const listener of this.#listeners.values()) {
      for (const [kind, servers] of changes) {
        const concerned = servers === null || [...servers].some((id) => mayUse(listener.caller, id));
        if (concerned) listener.listChanged(kind);
      }
    }
  }
}
