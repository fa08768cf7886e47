import type { AuditEvent } from '../../shared/model/audit_event.ts';
import type { AcknowledgedHead } from '../../shared/wire/audit_heads.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { Metrics } from '../../machine/ports.ts';
import type { AuditSink } from '../ports.ts';
import type { ControlChannel } from '../control/control_channel.ts';
import { EventIds } from './event_ids.ts';
import { EventSender } from './event_sender.ts';
import type { Link } from '../control/link.ts';
import { RefusedEvents } from './refused_events.ts';
import { Spool } from './spool.ts';
import { NODE_SPOOL_FILES } from './spool_files.ts';

interface AuditSpoolOptions {
  /** `$SVC_HOME/sidecar/spool`. */
  readonly directory: string;
  readonly sidecarId: string;
  readonly maxSpoolBytes: number;
  readonly channel: Pick<ControlChannel, 'sendEvents'>;
  readonly link: Link;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly warn: (message: string) => void;
  /** Reports where this sidecar's chain ends, as signed by the control plane. */
  readonly onAcknowledged?: (head: AcknowledgedHead) => void;
  readonly maxBackoffMs?: number;
}

/** The longest texts that the control plane accepts in an event. Longer ones are truncated, so that they cannot keep an event out of the log. */
const MAX_PATH_CHARACTERS = 60_000;
const MAX_TEXT_CHARACTERS = 1_000;

/** The audit sink: a spool on disk and the sender that empties it. */
export class AuditSpool implements AuditSink {
  readonly #options: AuditSpoolOptions;
  readonly #spool: Spool;
  readonly #refused: RefusedEvents;
  readonly #sender: EventSender;
  readonly #ids = new EventIds();
  /** The events recorded in this event-loop turn, as lines. */
  #unwritten: string[] = [];
  /** Resolves when they are written; null if no caller waits. */
  #turn: Promise<void> | null = null;
  #noteReason: ((sessionId: string, reason: string) => void) | null = null;
  #timeMs = -1;
  #time = '';

  constructor(options: AuditSpoolOptions) {
    this.#options = options;
    this.#refused = new RefusedEvents(options.directory, options.sidecarId);
    this.#spool = new Spool({
      directory: options.directory,
      maxSpoolBytes: options.maxSpoolBytes,
      files: NODE_SPOOL_FILES,
    });
    this.#sender = new EventSender({
      spool: this.#spool,
      channel: options.channel,
      link: options.link,
      refused: this.#refused,
      quarantine: (line, reason) => this.#quarantine(line, reason),
      ...(options.onAcknowledged && { onAcknowledged: options.onAcknowledged }),
      ...(options.maxBackoffMs === undefined ? {} : { maxBackoffMs: options.maxBackoffMs }),
    });
  }

  get accepting(): boolean {
    return this.#spool.accepting;
  }

  /** The reserve for passthrough events is used up too: refuse these requests as well, or events are lost. */
  get exhausted(): boolean {
    return this.#spool.exhausted;
  }

  /** The spool's part of `/v1/health`. */
  get pending(): { readonly bytes: number; readonly events: number; readonly dropped: number } {
    return { bytes: this.#spool.bytes, events: this.#spool.events, dropped: this.#spool.dropped };
  }

  /** From now on calls `note` for each event of a session that has a reason. */
  onReason(note: (sessionId: string, reason: string) => void): void {
    this.#noteReason = note;
  }

  start(): void {
    this.#sender.start();
  }

  async stop(): Promise<void> {
    this.#write();
    await this.#sender.stop();
    this.#spool.close();
  }

  record(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): string {
    const id = this.#ids.nextId(this.#options.clock.now());
    this.#unwritten.push(this.#lineOf(event, id));
    this.#write();
    return id;
  }

  recordInTurn(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): Promise<void> {
    this.#unwritten.push(this.#lineOf(event));
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#turn = null;
        this.#write();
        resolve();
      });
    });
    return this.#turn;
  }

  flush(timeoutMs: number): Promise<boolean> {
    this.#write();
    return this.#sender.flush(timeoutMs);
  }

  #write(): void {
    const lines = this.#unwritten;
    if (lines.length === 0) return;
    this.#unwritten = [];
    this.#spool.append(lines);
    this.#sender.notify();
  }

  #lineOf(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>, id?: string): string {
    const reason = event.data['svc.proxy.reason'];
    if (reason !== undefined && event.session_id !== null) this.#noteReason?.(event.session_id, reason);
    const now = this.#options.clock.now();
    if (now !== this.#timeMs) {
      this.#timeMs = now;
      this.#time = new Date(now).toISOString();
    }
    const full: AuditEvent = {
      id: id ?? this.#ids.nextId(now),
      type: event.type,
      time: this.#time,
      sidecar_id: this.#options.sidecarId,
      session_id: event.session_id,
      actor: event.actor,
      data: event.data,
    };
    const line = JSON.stringify(full);
    return `${line.length <= MAX_TEXT_CHARACTERS ? line : JSON.stringify(cutEvent(full))}\n`;
  }

  #quarantine(line: string, reason: string): void {
    const { metrics, warn } = this.#options;
    metrics.increment('svc_audit_events_rejected_total');
    const next = 'if the control plane is older than this sidecar, update it: the event is then sent again';
    warn(`The control plane refused an audit event (${reason}); it is kept in ${this.#refused.path}; ${next}`);
    try {
      this.#refused.add(line, reason);
    } catch (error) {
      warn(`A refused audit event could not be kept: ${String(error)}`);
    }
  }
}

function cutEvent(event: AuditEvent): AuditEvent {
  const data: Record<string, unknown> = { ...event.data };
  for (const [key, value] of Object.entries(data)) {
    const most = key === 'svc.proxy.upstream.path' ? MAX_PATH_CHARACTERS : MAX_TEXT_CHARACTERS;
    if (typeof value === 'string' && value.length > most) data[key] = `${value.slice(0, most)}…`;
  }
  return { ...event, data };
}
