import { join } from 'node:path';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import {
  type AcknowledgedHead,
  auditHead,
  type AuditHead,
  HEAD_STANDINGS,
  type HeadStanding,
  isGoodStanding,
} from '../../shared/wire/audit_heads.ts';
import { id, time } from '../../shared/wire/primitives.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { AuditSink } from '../ports.ts';
import type { ChannelFailure } from './channel_failure.ts';
import type { ControlChannel } from './control_channel.ts';
import type { Link } from './link.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { parseJson } from '../../shared/model/json.ts';

interface AuditWitnessOptions {
  /** `$SVC_HOME/sidecar`. */
  readonly directory: string;
  readonly controlPlaneId: string;
  readonly channel: Pick<ControlChannel, 'auditHeads'>;
  readonly link: Pick<Link, 'onUp'>;
  readonly clock: Clock;
  readonly record: AuditSink['record'];
  /** Reports a problem that a person has to look into. */
  readonly warn: (message: string) => void;
}

const place = auditHead.omit({ writer: true });
const mismatch = z.strictObject({
  writer: z.string(),
  standing: z.enum(HEAD_STANDINGS),
  remembered: place,
  /** Where the chain ended when the mismatch was noticed; null if the chain was missing. */
  found: place.nullable(),
  noticed_at: time,
});
/** A chain of the control plane's audit log that no longer contains the head that this sidecar remembers. */
export type AuditMismatch = z.output<typeof mismatch>;

const memory = z.strictObject({
  version: z.literal(1),
  control_plane_id: id('cpl'),
  heads: z.array(auditHead),
  mismatches: z.array(mismatch),
});

/** How often the chains are compared when nothing else triggers a comparison. */
const CHECK_EVERY_MS = 10 * 60_000;
/** Saves at most this often: every write is synced to disk, so not every reply causes one. A slightly older head only proves a little less. */
const SAVE_AFTER_MS = 1_000;

const STANDING_TEXT: { readonly [S in HeadStanding]: string } = {
  kept: 'is whole',
  pruned: 'was pruned',
  behind: 'ends before events that the control plane had acknowledged',
  differs: 'has other events in place of those that the control plane had acknowledged',
  missing: 'is gone',
};

/**
 * Remembers where the chains of the audit log end, as signed by the control plane: this sidecar's chain and the control
 * plane's own chain of the enterprise. A chain that is rolled back is detected here, even if the database looks consistent.
 * The remembered head advances only along the chain; a mismatch stays until a person accepts it.
 */
export class AuditWitness {
  readonly #options: AuditWitnessOptions;
  readonly #path: string;
  readonly #heads = new Map<string, AuditHead>();
  readonly #mismatches = new Map<string, AuditMismatch>();
  #isReadable = true;
  #checking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #saveTimer: NodeJS.Timeout | null = null;
  #saving: Promise<void> = Promise.resolve();

  /** Reads the heads that an earlier run saved. */
  constructor(options: AuditWitnessOptions) {
    this.#options = options;
    this.#path = join(options.directory, 'audit_heads.json');
    this.#load();
    options.link.onUp(() => void this.check());
  }

  get heads(): readonly AuditHead[] {
    return [...this.#heads.values()];
  }

  /** The mismatches that no person has accepted yet. */
  get mismatches(): readonly AuditMismatch[] {
    return [...this.#mismatches.values()];
  }

  /** False if the file of an earlier run cannot be used. Then the file is left as it is, and this run saves nothing. */
  get isKept(): boolean {
    return this.#isReadable;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.check(), CHECK_EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#checking;
    if (this.#saveTimer !== null) this.#save();
    await this.#saving;
  }

  /** Takes the head from a signed reply about events. If it does not continue the remembered head, checks the chain. */
  noteAcknowledged({ writer, sequence, hash, previous }: AcknowledgedHead): void {
    const remembered = this.#heads.get(writer);
    const continues =
      remembered === undefined || isSame(remembered, previous) || isSame(remembered, { sequence, hash });
    if (!continues || this.#mismatches.has(writer)) void this.check();
    else this.#remember({ writer, sequence, hash });
  }

  /** Asks the control plane about all remembered heads. Concurrent calls share one request. */
  check(): Promise<void> {
    this.#checking ??= this.#ask().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  /**
   * Drops the remembered head of a chain after a person has confirmed the mismatch: the chain is followed from its present
   * end, and the audit log records it. Refuses if there is no such mismatch, or if the control plane does not answer.
   */
  async accept(
    writer: string,
    remembered: z.output<typeof place>,
  ): Promise<Result<void, ChannelFailure | 'no_mismatch'>> {
    const found = this.#mismatches.get(writer);
    if (found === undefined || !isSame(found.remembered, remembered)) return err('no_mismatch');
    const told = await this.#options.channel.auditHeads([]);
    if (!told.ok) return told;
    const now = told.value.heads.find((head) => head.writer === writer) ?? null;
    this.#mismatches.delete(writer);
    if (now === null) this.#heads.delete(writer);
    else this.#heads.set(writer, now);
    this.#tell('sidecar.audit.mismatch_accepted', 'host', { ...found, found: now });
    this.#save();
    await this.#saving;
    return ok(undefined);
  }

  async #ask(): Promise<void> {
    const asked = this.heads;
    const told = await this.#options.channel.auditHeads(asked);
    if (!told.ok) return;
    const ends = new Map(told.value.heads.map((head) => [head.writer, head]));
    for (const { standing, ...head } of told.value.known) {
      const remembered = this.#heads.get(head.writer);
      if (remembered === undefined || !isSame(remembered, head)) continue;
      const end = ends.get(head.writer) ?? null;
      if (!isGoodStanding(standing)) this.#notice(head, standing, end);
      else if (end !== null && !this.#mismatches.has(head.writer)) this.#remember(end);
    }
    for (const end of ends.values()) if (!this.#heads.has(end.writer)) this.#remember(end);
  }

  #notice(head: AuditHead, standing: HeadStanding, end: AuditHead | null): void {
    const { writer, sequence, hash } = head;
    this.#options.warn(
      `The control plane's audit log was rolled back: its chain ${writer} ${STANDING_TEXT[standing]}. This sidecar remembers event ${sequence} (${hash})${end === null ? '' : `, and the chain now ends at event ${end.sequence}`}. Somebody changed the database, or restored it from a backup. If that was intended, confirm it with: svc audit accept`,
    );
    if (this.#mismatches.has(writer)) return;
    const found = end === null ? null : { sequence: end.sequence, hash: end.hash };
    const noticedAt = new Date(this.#options.clock.now()).toISOString();
    const noticed = { writer, standing, remembered: { sequence, hash }, found, noticed_at: noticedAt };
    this.#mismatches.set(writer, noticed);
    this.#tell('sidecar.audit.mismatch_noticed', null, noticed);
    this.#save();
  }

  #tell(
    type: 'sidecar.audit.mismatch_noticed' | 'sidecar.audit.mismatch_accepted',
    actor: 'host' | null,
    { writer, remembered, found }: Pick<AuditMismatch, 'writer' | 'remembered' | 'found'>,
  ): void {
    const data = {
      'svc.audit.writer': writer,
      'svc.audit.remembered_sequence': remembered.sequence,
      'svc.audit.remembered_hash': remembered.hash,
      ...(found !== null && { 'svc.audit.found_sequence': found.sequence, 'svc.audit.found_hash': found.hash }),
    };
    this.#options.record({ type, session_id: null, actor, data });
  }

  #remember(head: AuditHead): void {
    const known = this.#heads.get(head.writer);
    if (known !== undefined && isSame(known, head)) return;
    this.#heads.set(head.writer, { writer: head.writer, sequence: head.sequence, hash: head.hash });
    this.#saveTimer ??= setTimeout(() => this.#save(), SAVE_AFTER_MS).unref();
  }

  #load(): void {
    const text = readPrivateFile(this.#path);
    if (text.ok && text.value === null) return;
    const read = text.ok ? memory.safeParse(parseJson(text.value ?? '')) : null;
    if (read === null || !read.success) {
      this.#isReadable = false;
      const why = text.ok ? `${this.#path} is damaged` : text.error.message;
      this.#options.warn(
        `This sidecar's record of the audit log cannot be used: ${why}. Restore it, or move it away and restart.`,
      );
      return;
    }
    // The file belongs to another control plane: this sidecar was enrolled again.
    if (read.data.control_plane_id !== this.#options.controlPlaneId) return;
    for (const head of read.data.heads) this.#heads.set(head.writer, head);
    for (const noticed of read.data.mismatches) this.#mismatches.set(noticed.writer, noticed);
  }

  #save(): void {
    if (this.#saveTimer !== null) clearTimeout(this.#saveTimer);
    this.#saveTimer = null;
    if (!this.#isReadable) return;
    this.#saving = this.#saving
      .then(() => writePrivateFile(this.#path, `${JSON.stringify(this.#toStored(), null, 2)}\n`))
      .catch((error: unknown) => this.#options.warn(`cannot write ${this.#path}: ${String(error)}`));
  }

  #toStored(): z.input<typeof memory> {
    const { controlPlaneId } = this.#options;
    return { version: 1, control_plane_id: controlPlaneId, heads: [...this.heads], mismatches: [...this.mismatches] };
  }
}

function isSame(one: z.output<typeof place>, other: z.output<typeof place>): boolean {
  return one.sequence === other.sequence && one.hash === other.hash;
}
