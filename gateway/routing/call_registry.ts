import { randomBytes } from 'node:crypto';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { McpOutcome } from '../../shared/model/audit_event.ts';
import type { ActiveCall } from './active_call.ts';
import type { InputCall } from '../fronts/downstream.ts';
import { type CallLimits, CallSlots, type SlotUse } from './call_slots.ts';

/** The running calls by server: they decide which client is asked when a server sends a request. */
export class CallRegistry {
  readonly #calls = new Map<string, Set<ActiveCall>>();
  readonly #slots = new CallSlots();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  countOf(serverId: string): number {
    return this.#calls.get(serverId)?.size ?? 0;
  }

  /** Whether there is no free slot for another call. */
  isFull(use: SlotUse, limits: CallLimits): boolean {
    return this.#slots.isFull(use, limits, { all: this.#count, ofServer: this.countOf(use.serverId) });
  }

  /**
   * Takes a slot and returns the function that frees it; null if there is none. Concurrent calls never share a slot. A call takes its
   * slot before it is sent, and so before it is registered.
   */
  take(use: SlotUse, limits: CallLimits): (() => void) | null {
    return this.isFull(use, limits) ? null : this.#slots.take(use);
  }

  add(serverId: string, call: ActiveCall): void {
    const calls = this.#calls.get(serverId) ?? new Set<ActiveCall>();
    if (calls.has(call)) return;
    this.#calls.set(serverId, calls.add(call));
    this.#count += 1;
  }

  remove(serverId: string, call: ActiveCall): void {
    const calls = this.#calls.get(serverId);
    if (calls?.delete(call) !== true) return;
    this.#count -= 1;
    if (calls.size === 0) this.#calls.delete(serverId);
  }

  /** The newest call of the only client that uses the server now; null if there is none or more than one. */
  findSoleCall(serverId: string): ActiveCall | null {
    const calls = [...(this.#calls.get(serverId) ?? [])];
    const clients = new Set(calls.map(({ owner }) => owner.clientKey));
    return clients.size === 1 ? (calls.at(-1) ?? null) : null;
  }

  /** Asks the client whose call is running on the server. Refused if there is none or more than one. */
  ask(serverId: string, input: InputCall, gone: AbortSignal): Promise<Record<string, unknown>> {
    const call = this.findSoleCall(serverId);
    if (call !== null) return call.ask(input, gone);
    const why = this.countOf(serverId) === 0 ? 'no call of a client is running' : 'several clients have calls running';
    return Promise.reject(new ProtocolError(ProtocolErrorCode.InvalidRequest, `${input.method} is refused: ${why}`));
  }
}

/** A request that was begun, and is recorded. */
export interface BegunRequest {
  /** Called once, when it has ended. */
  readonly finished: (outcome: McpOutcome) => void;
  /** Called before `finished` if it becomes a task; false if it may not. */
  readonly becomeTask: () => boolean;
}

/** For a request that is not recorded. */
export const UNRECORDED: BegunRequest = { finished: () => undefined, becomeTask: () => false };

/** A call that waits for its client's next request. */
export interface HeldCall {
  /** Hash of the client, the method and its arguments: only the same request may continue the call. */
  readonly subject: string;
  readonly clientKey: string | null;
  /** Earlier generation: the call that is still running. */
  readonly running: ActiveCall | null;
  /** Later generation: the state that the server wants back. */
  readonly state: string | undefined;
  readonly begun: BegunRequest;
  /** Called if the client did not return in time. */
  readonly onDropped: () => void;
}

const MOST_HELD = 1_024;

/** The calls that wait for their clients, by the state that the client must send back: random and valid once. */
export class HeldCalls {
  readonly #held = new Map<string, { readonly call: HeldCall; readonly timer: NodeJS.Timeout }>();
  readonly #forMs: number;

  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  /** Returns the state for the client; null if too many calls are waiting. */
  hold(call: HeldCall): string | null {
    if (this.#held.size >= MOST_HELD) return null;
    const state = `svc.${randomBytes(24).toString('base64url')}`;
    const timer = setTimeout(() => this.#drop(state), this.#forMs);
    timer.unref();
    this.#held.set(state, { call, timer });
    return state;
  }

  /** Takes the call of a state; null if the state is unknown, expired, or belongs to another request. */
  take(state: string, subject: string): HeldCall | null {
    const held = this.#held.get(state);
    if (held === undefined || held.call.subject !== subject) return null;
    this.#held.delete(state);
    clearTimeout(held.timer);
    return held.call;
  }

  /** The client has disconnected. */
  dropClient(clientKey: string): void {
    for (const [state, { call }] of this.#held) if (call.clientKey === clientKey) this.#drop(state);
  }

  dropAll(): void {
    for (const state of this.#held.keys()) this.#drop(state);
  }

  #drop(state: string): void {
    const held = this.#held.get(state);
    if (held === undefined) return;
    this.#held.delete(state);
    clearTimeout(held.timer);
    held.call.running?.end('cancelled');
    held.call.onDropped();
  }
}
