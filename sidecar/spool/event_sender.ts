import type { AcknowledgedHead } from '../../shared/wire/audit_heads.ts';
import type { EventsOutcome, ControlChannel } from '../control/control_channel.ts';
import type { Link } from '../control/link.ts';
import { Pacer } from './pacer.ts';
import type { Spool, SpoolBatch } from './spool.ts';

export interface EventSenderOptions {
  readonly spool: Spool;
  readonly channel: Pick<ControlChannel, 'sendEvents'>;
  readonly link: Link;
  /** Keeps an event that the control plane will never take, so that a person can look at it. */
  readonly quarantine: (line: string, reason: string) => void;
  /** Told where the chain of these events ends, by each signed answer that says it. */
  readonly acknowledged?: (head: AcknowledgedHead) => void;
  /** How long the first event of a batch waits for others. */
  readonly gatherMs?: number;
  readonly maxBackoffMs?: number;
  readonly random?: () => number;
}

const MAX_EVENTS = 500;
const MAX_BYTES = 256 * 1024;
const ID = /^\{"id":"(evt_[0-9a-z]{26})"/;

/**
 * Moves events from the spool to the control plane, oldest first. A batch leaves the spool when each of its events was
 * accepted or can never be; until then it is sent again, which is harmless because the events carry their ids.
 */
export class EventSender {
  readonly #options: EventSenderOptions;
  readonly #pacer: Pacer;
  readonly #flushes = new Set<() => void>();
  #gathering: NodeJS.Timeout | null = null;
  /** The oldest events have waited for others long enough. */
  #due = true;
  #stopped = false;
  #loop: Promise<void> | null = null;

  constructor(options: EventSenderOptions) {
    this.#options = options;
    this.#pacer = new Pacer({
      baseMs: 100,
      maxMs: options.maxBackoffMs ?? 5_000,
      random: options.random ?? Math.random,
    });
    options.link.onUp(() => this.#sendNow());
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Stops after the call under way, if there is one. What was not sent stays in the spool. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#pacer.wake();
    await this.#loop;
  }

  /** An event was appended: it is sent soon, together with what comes right after it. */
  notify(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = null;
      this.#due = true;
      if (this.#reachable()) this.#pacer.wake();
    }, this.#options.gatherMs ?? 20).unref();
  }

  /** Sends at once; true when everything appended before the call is settled, false when `timeoutMs` have passed. */
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

  /** When it is not, the pause under way ends by itself or with the control plane's return. */
  #reachable(): boolean {
    const { state } = this.#options.link;
    return state === 'up' || state === 'connecting';
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#options.spool.writeHeld();
      const batch = this.#isTime() ? this.#nextBatch() : null;
      if (batch === null) await this.#pacer.wait();
      else if (await this.#deliver(batch)) this.#pacer.succeeded();
      else if (!this.#stopped) await this.#backOff();
    }
  }

  /** Each call costs both sides some signatures: what comes while one is under way gathers too, unless it is many. */
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

  /** Null also when the disk cannot be read: the next event, or the control plane's return, tries again. */
  #nextBatch(): SpoolBatch | null {
    try {
      const batch = this.#options.spool.nextBatch(MAX_EVENTS, MAX_BYTES);
      return batch !== null && batch.lines.length > 0 ? batch : null;
    } catch {
      return null;
    }
  }

  /** False when the control plane took nothing of what it should have taken. */
  async #deliver(batch: SpoolBatch): Promise<boolean> {
    let pending = batch.recovered ? batch.lines.filter((line) => this.#isEvent(line)) : batch.lines;
    while (pending.length > 0) {
      const sent = await this.#options.channel.sendEvents(pending);
      if (!sent.ok) return false;
      if (sent.value.head !== undefined) this.#options.acknowledged?.(sent.value.head);
      const left = this.#unsettled(pending, sent.value);
      if (left.length === pending.length) return false;
      pending = left;
    }
    batch.settle();
    for (const check of this.#flushes) check();
    return true;
  }

  #unsettled(lines: readonly string[], outcome: EventsOutcome): readonly string[] {
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

function idOf(line: string): string {
  return ID.exec(line)?.[1] ?? '';
}
