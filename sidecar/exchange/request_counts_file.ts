import type { Clock } from '../../shared/model/clock.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { RequestCounts } from './request_counts.ts';

/** A crash forgets the requests of at most this long. */
const WRITE_AFTER_MS = 1000;

interface RequestCountsFile {
  readonly counts: RequestCounts;
  /** Writes what has not been written yet. */
  readonly flush: () => Promise<void>;
}

interface FileOptions {
  readonly path: string;
  readonly clock: Clock;
  /** What the person who started a session allows it; null: no limit. */
  readonly limitsOfSession: (sessionId: string) => RequestLimits | null;
  readonly warn: (message: string) => void;
}

/**
 * The counts that the file remembers, which is written a moment after they change. A file that cannot be read or written costs
 * what it remembers, with a warning: without it the counts begin at zero after a restart.
 */
export function openRequestCounts({ path, clock, limitsOfSession, warn }: FileOptions): RequestCountsFile {
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  const flush = (): Promise<void> => {
    if (timer === null) return writing;
    clearTimeout(timer);
    timer = null;
    writing = writing
      .then(() => writePrivateFile(path, counts.save()))
      .catch((error: unknown) =>
        warn(`${path} cannot be written, so a restart forgets how many requests there were: ${String(error)}`),
      );
    return writing;
  };
  const onDayCounted = (): void => {
    timer ??= setTimeout(() => void flush(), WRITE_AFTER_MS).unref();
  };
  const counts = new RequestCounts({ clock, limitsOfSession, onDayCounted });
  const saved = readPrivateFile(path);
  const isRestored = saved.ok && (saved.value === null || counts.restore(saved.value));
  if (!isRestored) warn(saved.ok ? `${path} is damaged: the counts of requests begin at zero` : saved.error.message);
  return { counts, flush };
}
