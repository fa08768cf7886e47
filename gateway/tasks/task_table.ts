import { randomBytes } from 'node:crypto';
import type { ClientCapabilities, Tool } from '@modelcontextprotocol/server';
import type { McpOutcome } from '../../shared/model/audit_event.ts';
import type { Caller } from '../../machine/mcp_caller.ts';
import type { Downstream } from '../fronts/downstream.ts';
import type { GatewayClient } from '../fronts/gateway_client.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import type { CreatedTask } from './task_messages.ts';

/** A call that a server has made a task of. */
export interface StartedTask {
  readonly client: Pick<GatewayClient, 'key' | 'caller'>;
  readonly supervised: SupervisedServer;
  /** The connection that began the task; the task is lost with it. */
  readonly downstream: Downstream;
  readonly tool: Tool;
  readonly created: CreatedTask;
  /** What the server was told that the client can do. */
  readonly capabilities: ClientCapabilities;
  /** Called once, when the task ends. */
  readonly finished: (outcome: McpOutcome) => void;
}

/** A task of the gateway. */
export interface KeptTask extends StartedTask {
  /** As its client knows it. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Aborted when the task ends. */
  readonly running: AbortController;
  /** When the server was last asked, in milliseconds since the epoch. */
  askedAt: number;
}

/** Tasks that have ended are kept until they expire, or until there are more. */
interface TaskLimits {
  readonly maxKeptTasks: number;
  readonly maxKeptTasksOfCaller: number;
}

/**
 * The gateway's tasks by the ids that it gives out. An id is random and valid for the connection and session that began the task;
 * to any other caller it is unknown.
 */
export class TaskTable {
  readonly #tasks = new Map<string, KeptTask>();
  readonly #limits: TaskLimits;
  readonly #now: () => number;

  constructor(limits: TaskLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Keeps a task for `ttlMs`. */
  add(started: StartedTask, ttlMs: number): KeptTask {
    this.#makeRoom(ownerOf(started.client));
    const createdAt = this.#now();
    const task: KeptTask = {
      ...started,
      id: randomBytes(24).toString('base64url'),
      createdAt,
      expiresAt: createdAt + ttlMs,
      running: new AbortController(),
      askedAt: createdAt,
    };
    this.#tasks.set(task.id, task);
    return task;
  }

  /** The client's task; null if the id is unknown, the task has expired, or another client began it. */
  find(id: string, client: StartedTask['client']): KeptTask | null {
    const task = this.#tasks.get(id);
    if (task === undefined || ownerOf(task.client) !== ownerOf(client)) return null;
    return this.#now() < task.expiresAt ? task : null;
  }

  /** The tasks that have not ended. */
  listRunning(): readonly KeptTask[] {
    return [...this.#tasks.values()].filter(({ running }) => !running.signal.aborted);
  }

  /** Forgets the tasks of a connection. Returns them. */
  removeClient(clientKey: string): readonly KeptTask[] {
    const removed = [...this.#tasks.values()].filter(({ client }) => client.key === clientKey);
    for (const { id } of removed) this.#tasks.delete(id);
    return removed;
  }

  /** Drops what has expired; at a limit, also the oldest ended task: of the caller, or of the one with the most tasks. */
  #makeRoom(owner: string): void {
    const now = this.#now();
    const ended = [...this.#tasks.values()].filter(({ running }) => running.signal.aborted);
    for (const task of ended) if (task.expiresAt <= now) this.#tasks.delete(task.id);
    const left = Map.groupBy(
      ended.filter(({ expiresAt }) => expiresAt > now),
      ({ client }) => ownerOf(client),
    );
    const own = left.get(owner) ?? [];
    const isOwnFull = own.length >= this.#limits.maxKeptTasksOfCaller;
    if (!isOwnFull && this.#tasks.size < this.#limits.maxKeptTasks) return;
    const [most = []] = [...left.values()].toSorted((a, b) => b.length - a.length);
    // Tasks are in the order of their creation.
    const [oldest] = isOwnFull ? own : most;
    if (oldest !== undefined) this.#tasks.delete(oldest.id);
  }
}

function ownerOf({ key, caller }: { readonly key: string | null; readonly caller: Caller }): string {
  return JSON.stringify([key, caller.sessionId]);
}
