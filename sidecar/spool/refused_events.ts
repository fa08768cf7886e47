import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { errorCode } from '../../shared/model/error_code.ts';

const NAME = 'rejected.jsonl';
const kept = z.object({ line: z.string() });
const event = z.object({ id: z.string(), sidecar_id: z.string() });

/** An event that was refused before. */
export interface RefusedEvent {
  readonly id: string;
  /** As it was sent. */
  readonly line: string;
}

/**
 * The events that a control plane has refused by themselves, in a file beside the spool. Most come from a sidecar that is newer than
 * its control plane, and are offered again later (decision 0164).
 */
export class RefusedEvents {
  readonly path: string;
  readonly #sidecarId: string;

  constructor(directory: string, sidecarId: string) {
    this.path = join(directory, NAME);
    this.#sidecarId = sidecarId;
  }

  add(line: string, reason: string): void {
    appendFileSync(this.path, `${JSON.stringify({ reason, line })}\n`, { mode: 0o600 });
  }

  /** Those of this sidecar, oldest first; a line that is damaged, or of an earlier enrolment, is for a person alone. */
  list(): readonly RefusedEvent[] {
    return this.#lines().flatMap((text) => this.#eventIn(text) ?? []);
  }

  /** Removes what is in the log now. */
  remove(ids: ReadonlySet<string>): void {
    const left = this.#lines().filter((text) => {
      const known = this.#eventIn(text);
      return known === null || !ids.has(known.id);
    });
    const draft = `${this.path}.new`;
    writeFileSync(draft, left.map((text) => `${text}\n`).join(''), { mode: 0o600 });
    renameSync(draft, this.path);
  }

  #lines(): readonly string[] {
    try {
      return readFileSync(this.path, 'utf8')
        .split('\n')
        .filter((text) => text !== '');
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  #eventIn(text: string): RefusedEvent | null {
    const line = kept.safeParse(parseJson(text)).data?.line.trimEnd() ?? '';
    const read = event.safeParse(parseJson(line)).data;
    return read?.sidecar_id === this.#sidecarId ? { id: read.id, line } : null;
  }
}
