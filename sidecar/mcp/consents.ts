import { join } from 'node:path';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { corruptStateFile, readPrivateFile, type StateFileError, writePrivateFile } from '../../machine/state_file.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { parseJson } from '../../shared/model/json.ts';

/**
 * One person's word that this machine may run what a server's configuration says. The hash is what counts; the text is what
 * the person was shown then, so that the next time only the difference has to be read.
 */
const consent = z.strictObject({
  server_id: z.string(),
  name: z.string(),
  /** SHA-256 of `text`, in hex. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** The canonical JSON that was hashed: it has references to secrets, never their values. */
  text: z.string(),
  consented_at: z.string(),
});
export type Consent = Readonly<z.infer<typeof consent>>;

const consentsFile = z.strictObject({ version: z.literal(1), consents: z.array(consent) });

export interface ConsentsOptions {
  /** `$SVC_HOME/mcp`. */
  readonly directory: string;
  readonly clock: Clock;
  /** Told once why the file is not used. */
  readonly warn: (message: string) => void;
}

/**
 * The consents of this machine, in `consents.json` (0600). They are read anew each time, so that taking the file away takes
 * every consent back; a file that cannot be used counts as none. The daemon alone writes it.
 */
export class Consents {
  readonly #path: string;
  readonly #options: ConsentsOptions;
  readonly #listeners = new Set<() => void>();
  #warned = '';
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: ConsentsOptions) {
    this.#options = options;
    this.#path = join(options.directory, 'consents.json');
  }

  /** What was consented to last for a server; whether that is what it is now, its hash tells. */
  of(serverId: string): Consent | null {
    return this.all().find(({ server_id: id }) => id === serverId) ?? null;
  }

  all(): readonly Consent[] {
    const read = this.#read();
    if (read.ok) {
      this.#warned = '';
      return read.value;
    }
    if (this.#warned !== read.error.message) this.#options.warn(`No server is started: ${read.error.message}`);
    this.#warned = read.error.message;
    return [];
  }

  /** Keeps a consent in the place of the one before it. Refuses when the file cannot be used or written. */
  give(given: Omit<Consent, 'consented_at'>): Promise<Result<Consent, StateFileError>> {
    return this.#change((consents) => {
      const one = { ...given, consented_at: new Date(this.#options.clock.now()).toISOString() };
      return { value: one, kept: [...without(consents, given.server_id), one] };
    });
  }

  /** Takes the consent to a server back. False when there was none. */
  withdraw(serverId: string): Promise<Result<boolean, StateFileError>> {
    return this.#change((consents) => {
      const kept = without(consents, serverId);
      return { value: kept.length < consents.length, kept };
    });
  }

  /** Calls `listener` after each change that was made here; returns the way to cancel it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** One change after the other: each is made of what the one before it left. */
  #change<T>(
    make: (consents: readonly Consent[]) => { readonly value: T; readonly kept: readonly Consent[] },
  ): Promise<Result<T, StateFileError>> {
    const changed = this.#writing.then(async (): Promise<Result<T, StateFileError>> => {
      const read = this.#read();
      if (!read.ok) return read;
      const { value, kept } = make(read.value);
      const written = await this.#write(kept);
      return written.ok ? ok(value) : written;
    });
    this.#writing = changed;
    return changed;
  }

  async #write(consents: readonly Consent[]): Promise<Result<void, StateFileError>> {
    try {
      await writePrivateFile(this.#path, `${JSON.stringify({ version: 1, consents }, null, 2)}\n`);
    } catch (error) {
      const why = errorCode(error) || 'unknown error';
      const message = `${this.#path} cannot be written (${why}). Give this user room and the right to write there.`;
      return err({ reason: 'state_file_unreadable', path: this.#path, message });
    }
    for (const listener of this.#listeners) listener();
    return ok(undefined);
  }

  #read(): Result<readonly Consent[], StateFileError> {
    const text = readPrivateFile(this.#path);
    if (!text.ok) return text;
    if (text.value === null) return ok([]);
    const parsed = consentsFile.safeParse(parseJson(text.value));
    if (parsed.success) return ok(parsed.data.consents);
    const fix = 'Delete it and consent again: svc mcp consent';
    return err(corruptStateFile(this.#path, 'it does not hold consents', fix));
  }
}

function without(consents: readonly Consent[], serverId: string): readonly Consent[] {
  return consents.filter(({ server_id: id }) => id !== serverId);
}
