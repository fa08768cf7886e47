import type { AcknowledgedHead } from '../../shared/wire/audit_heads.ts';
import type { EventsOutcome, ControlChannel } from '../control/control_channel.ts';
import type { Link } from '../control/link.ts';
import { Pacer } from './pacer.ts';
import type { RefusedEvent, RefusedEvents } from './refused_events.ts';
import type { Spool, SpoolBatch } from './spool.ts';

interface EventSenderOptions {
  readonly spool: Spool;
  readonly channel: Pick<ControlChannel, 'sendEvents'>;
  readonly link: Link;
  /** Keeps an event that the control plane refuses. */
  readonly quarantine: (line: string, reason: string) => void;
  /** What was refused before; without it, nothing is offered again. */
  readonly refused?: Pick<RefusedEvents, 'list' | 'remove'>;
  /** Receives the end of these events' chain from each signed reply. */
  readonly onAcknowledged?: (head: AcknowledgedHead) => void;
  readonly maxBackoffMs?: number;
  readonly random?: () => number;
}

/** How long the first event of a batch waits for others: briefly, because a person may be watching. */
const GATHER_MS = 20;
/**
 * The same under load. A call costs both sides two signatures and the control plane two transactions, as much as storing
 * about a hundred events, so it should have many.
 */
const BUSY_GATHER_MS = 200;
/** After a batch of at least this many events there is load. */
const BUSY_EVENTS = 5;
const MAX_EVENTS = 500;
const MAX_BYTES = 256 * 1024;
const ID = /^\{"id":"(evt_[0-9a-z]{26})"/;

/**
 * Moves events from the spool to the control plane, oldest first. A batch leaves the spool when each of its events was
 * accepted or can never be. Until then it is sent again, which is harmless because the events carry their ids.
 */
export class EventSender {
  readonly #options: EventSenderOptions;
  readonly #pacer: Pacer;
  readonly #flushes = new Set<() => void>();
  #gathering: NodeJS.Timeout | null = null;
  #isBusy = false;
  /** How many events the pending call has. */
  #inCall = 0;
  /** The oldest events have waited long enough for others. */
  #due = true;
  /** The control plane may be another version since the last offer of refused events. */
  #mayOffer = false;
  #stopped = false;
  #loop: Promise<void> | null = null;

  constructor(options: EventSenderOptions) {
    this.#options = options;
    this.#pacer = new Pacer({
      baseMs: 100,
      maxMs: options.maxBackoffMs ?? 5_000,
      random: options.random ?? Math.random,
    });
    options.link.onUp(() => {
      this.#mayOffer = true;
      this.#sendNow();
    });
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Stops after the pending call, if there is one. Unsent events stay in the spool. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#pacer.wake();
    await this.#loop;
  }

  /** An event was appended: it is sent soon, together with those that follow shortly, or once a call is full. */
  notify(): void {
    if (this.#gathering === null) {
      const wait = this.#isBusy ? BUSY_GATHER_MS : GATHER_MS;
      this.#gathering = setTimeout(() => this.#endGathering(), wait).unref();
    } else if (!this.#due && this.#options.spool.events - this.#inCall >= MAX_EVENTS) this.#endGathering();
  }

  #endGathering(): void {
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#gathering = null;
    this.#due = true;
    if (this.#reachable()) this.#pacer.wake();
  }

  /** Sends at once. Resolves with true when everything appended before the call is settled, or with false after `timeoutMs`. */
  flush(timeoutMs: number): Promise<boolean> {
    const { spool } = this.#options;
    const target = spool.appended;
    if (spool.settled >= target) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => finish(), timeoutMs);
      const finish = (): void => {
        clearTimeout(timer);
        this.#flushes.delete(check);
        resolve(spool.settled >= target);
      };
      const check = (): void => {
        if (spool.settled >= target) finish();
      };
      this.#flushes.add(check);
      this.#sendNow();
    });
  }

  #sendNow(): void {
    this.#due = true;
    this.#pacer.wake();
  }

  /** If not settled, the current pause ends by itself or when the control plane is back. */
  #reachable(): boolean {
    const { state } = this.#options.link;
    return state === 'up' || state === 'connecting';
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#options.spool.writeHeld();
      if (this.#mayOffer) await this.#offerRefused();
      const batch = this.#isTime() ? this.#nextBatch() : null;
      if (batch === null) await this.#pacer.wait();
      else if (await this.#deliver(batch)) this.#pacer.noteSuccess();
      else if (!this.#stopped) await this.#backOff();
    }
  }

  /** Events that arrive during a call are batched too, unless there are many. */
  #isTime(): boolean {
    const { events } = this.#options.spool;
    const isTime = this.#due || this.#flushes.size > 0 || events >= MAX_EVENTS;
    if (!isTime && events > 0) this.notify();
    this.#due = false;
    return isTime;
  }

  async #backOff(): Promise<void> {
    await this.#pacer.backOff();
    this.#due = true;
  }

  /** Null also if the disk cannot be read: the next event, or the control plane's return, tries again. */
  #nextBatch(): SpoolBatch | null {
    try {
      const batch = this.#options.spool.nextBatch(MAX_EVENTS, MAX_BYTES);
      return batch !== null && batch.lines.length > 0 ? batch : null;
    } catch {
      return null;
    }
  }

  /** False if the control plane did not accept what it should have. */
  async #deliver(batch: SpoolBatch): Promise<boolean> {
    this.#inCall = batch.lines.length;
    const isDelivered = await this.#settle(batch);
    this.#inCall = 0;
    if (isDelivered) this.#isBusy = batch.lines.length >= BUSY_EVENTS;
    return isDelivered;
  }

  async #settle(batch: SpoolBatch): Promise<boolean> {
    let pending = batch.recovered ? batch.lines.filter((line) => this.#isEvent(line)) : batch.lines;
    while (pending.length > 0) {
      const sent = await this.#options.channel.sendEvents(pending);
      if (!sent.ok) return false;
      if (sent.value.head !== undefined) this.#options.onAcknowledged?.(sent.value.head);
      const left = this.#keepUnsettled(pending, sent.value);
      if (left.length === pending.length) return false;
      pending = left;
    }
    batch.settle();
    for (const check of this.#flushes) check();
    return true;
  }

  /**
   * Offers refused events again, in calls of their own: those of a kind that only a newer control plane knows are accepted once it
   * was updated. What is refused again stays where it is.
   */
  async #offerRefused(): Promise<void> {
    this.#mayOffer = false;
    const { refused, channel } = this.#options;
    const accepted = new Set<string>();
    for (const batch of batchesOf(listOf(refused))) {
      // The next return of the control plane tries again.
      const sent = this.#stopped ? null : await channel.sendEvents(batch.map(({ line }) => line));
      if (sent === null || !sent.ok) break;
      if (sent.value.head !== undefined) this.#options.onAcknowledged?.(sent.value.head);
      for (const id of sent.value.accepted) accepted.add(id);
    }
    if (accepted.size > 0) removeFrom(refused, accepted);
  }

  #keepUnsettled(lines: readonly string[], outcome: EventsOutcome): readonly string[] {
    const accepted = new Set(outcome.accepted);
    const rejected = new Map(outcome.rejected.map(({ index, message }) => [index, message]));
    return lines.filter((line, index) => {
      if (accepted.has(idOf(line))) return false;
      const reason = rejected.get(index);
      if (reason !== undefined) this.#options.quarantine(line, reason);
      return reason === undefined;
    });
  }

  /** A damaged line of an earlier run would make the whole call unreadable. */
  #isEvent(line: string): boolean {
    try {
      JSON.parse(line);
      return true;
    } catch {
      this.#options.quarantine(line, 'the line is not JSON');
      return false;
    }
  }
}

/** Nothing if the file cannot be read: it stays for a person. */
function listOf(refused: EventSenderOptions['refused']): readonly RefusedEvent[] {
  try {
    return refused?.list() ?? [];
  } catch {
    return [];
  }
}

/** On a full disk they stay, and are offered once more: the log has them by their ids. It must not end the sending of others. */
function removeFrom(refused: EventSenderOptions['refused'], accepted: ReadonlySet<string>): void {
  try {
    refused?.remove(accepted);
  } catch {
    return;
  }
}

function batchesOf(events: readonly RefusedEvent[]): readonly (readonly RefusedEvent[])[] {
  const batches: RefusedEvent[][] = [];
  let bytes = MAX_BYTES;
  for (const event of events) {
    const size = Buffer.byteLength(event.line);
    const last = batches.at(-1);
    if (last !== undefined && last.length < MAX_EVENTS && bytes + size <= MAX_BYTES) last.push(event);
    else batches.push([event]);
    bytes = batches.at(-1)?.length === 1 ? size : bytes + size;
  }
  return batches;
}

function idOf(line: string): string {
  return ID.exec(line)?.[1] ?? '';
}
