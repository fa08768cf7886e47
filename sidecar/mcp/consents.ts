import { join } from 'node:path';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import {
  corruptStateFile,
  readPrivateFile,
  writePrivateFile,
  type StateFileProblemReason,
} from '../../machine/state_file.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { imageId } from '../../shared/wire/primitives.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { Problem } from '../../shared/model/problem.ts';

/**
 * A person's consent that this machine may run what a server's configuration says. The hash decides; the text is what the
 * person saw, so that next time only the difference has to be reviewed.
 */
const consent = z.strictObject({
  server_id: z.string(),
  name: z.string(),
  /** SHA-256 of `text`, in hex. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** The canonical JSON that was hashed. It contains references to secrets, never their values. */
  text: z.string(),
  consented_at: z.string(),
  /** The only hosts that its container may reach. Absent: its network is not closed (also in files of earlier versions). */
  hosts: z.array(z.string()).optional(),
  /** The id of the image that its own `docker run` starts. Absent without one, and in files of earlier versions. */
  image: imageId.optional(),
});
export type Consent = Readonly<z.infer<typeof consent>>;

const consentsFile = z.strictObject({ version: z.literal(1), consents: z.array(consent) });

interface ConsentsOptions {
  /** `$SVC_HOME/mcp`. */
  readonly directory: string;
  readonly clock: Clock;
  /** Reports once why the file is not used. */
  readonly warn: (message: string) => void;
}

/**
 * The consents of this machine, in `consents.json` (0600). The file is read on every use, so deleting it withdraws every
 * consent; an unusable file counts as no consent. Only the sidecar writes it.
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

  /** The last consent for each server. Its hash tells whether it covers the present configuration. */
  listAll(): readonly Consent[] {
    const read = this.#read();
    if (read.ok) {
      this.#warned = '';
      return read.value;
    }
    if (this.#warned !== read.error.message) this.#options.warn(`No server is started: ${read.error.message}`);
    this.#warned = read.error.message;
    return [];
  }

  /** Stores a consent in place of the earlier one. Refuses if the file cannot be used or written. */
  give(given: Omit<Consent, 'consented_at'>): Promise<Result<Consent, Problem<StateFileProblemReason>>> {
    return this.#change((consents) => {
      const one = { ...given, consented_at: new Date(this.#options.clock.now()).toISOString() };
      return { value: one, kept: [...dropServer(consents, given.server_id), one] };
    });
  }

  /** Replaces the hosts of a server with a closed network. False if it has no such consent. */
  allowHosts(serverId: string, hosts: readonly string[]): Promise<Result<boolean, Problem<StateFileProblemReason>>> {
    return this.#change((consents) => {
      const found = consents.find((one) => one.server_id === serverId && one.hosts !== undefined);
      const kept = consents.map((one) => (one === found ? { ...one, hosts: [...hosts] } : one));
      return { value: found !== undefined, kept };
    });
  }

  /** Withdraws the consent to a server. False if there was none. */
  withdraw(serverId: string): Promise<Result<boolean, Problem<StateFileProblemReason>>> {
    return this.#change((consents) => {
      const kept = dropServer(consents, serverId);
      return { value: kept.length < consents.length, kept };
    });
  }

  /** Calls `listener` after each change made by this process; returns a function that unsubscribes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Serialises changes, because each builds on the one before. */
  #change<T>(
    make: (consents: readonly Consent[]) => { readonly value: T; readonly kept: readonly Consent[] },
  ): Promise<Result<T, Problem<StateFileProblemReason>>> {
    const changed = this.#writing.then(async (): Promise<Result<T, Problem<StateFileProblemReason>>> => {
      const read = this.#read();
      if (!read.ok) return read;
      const { value, kept } = make(read.value);
      const written = await this.#write(kept);
      return written.ok ? ok(value) : written;
    });
    this.#writing = changed;
    return changed;
  }

  async #write(consents: readonly Consent[]): Promise<Result<void, Problem<StateFileProblemReason>>> {
    try {
      await writePrivateFile(this.#path, `${JSON.stringify({ version: 1, consents }, null, 2)}\n`);
    } catch (error) {
      const why = errorCode(error) || 'unknown error';
      const message = `cannot write ${this.#path} (${why}). Give this user write access and enough disk space there.`;
      return err({ reason: 'state_file_unreadable', message });
    }
    for (const listener of this.#listeners) listener();
    return ok(undefined);
  }

  #read(): Result<readonly Consent[], Problem<StateFileProblemReason>> {
    const text = readPrivateFile(this.#path);
    if (!text.ok) return text;
    if (text.value === null) return ok([]);
    const parsed = consentsFile.safeParse(parseJson(text.value));
    if (parsed.success) return ok(parsed.data.consents);
    const fix = 'Delete it and consent again: svc mcp consent';
    return err(corruptStateFile(this.#path, 'it does not contain consents', fix));
  }
}

function dropServer(consents: readonly Consent[], serverId: string): readonly Consent[] {
  return consents.filter(({ server_id: id }) => id !== serverId);
}
