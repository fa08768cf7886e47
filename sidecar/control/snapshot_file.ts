import { join } from 'node:path';
import type { Clock } from '../../shared/model/clock.ts';
import type { ControlChannel, SnapshotReply, VerifiedSnapshot } from './control_channel.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';

/** Stores the newest snapshot across restarts. It contains no secrets. */
export interface SnapshotFile {
  /** The stored snapshot, verified again; null if there is none that may be used. */
  load(channel: Pick<ControlChannel, 'verifyStored' | 'verifyStoredConfirmation'>): Promise<StoredSnapshot | null>;
  /** Stores a reply of the control plane; returns before it is written. */
  keep(reply: SnapshotReply): void;
  /** Resolves when everything stored so far is written. */
  waitForWrites(): Promise<void>;
}

interface StoredSnapshot {
  readonly snapshot: VerifiedSnapshot;
  readonly confirmedAt: number;
}

interface SnapshotFileOptions {
  /** `$SVC_HOME/sidecar`. */
  readonly directory: string;
  readonly clock: Clock;
  /** Reports why a file was not used or not written. */
  readonly warn: (message: string) => void;
}

/** A confirmation only extends the stored snapshot's life, so it is written at most this often. */
const CONFIRMATION_INTERVAL_MS = 10 * 60 * 1000;

/**
 * `snapshot.jws`: the control plane's signed snapshot on the first line and its newest saved confirmation on the second,
 * both exactly as signed, so that a changed file is detected.
 */
export function createSnapshotFile(options: SnapshotFileOptions): SnapshotFile {
  const path = join(options.directory, 'snapshot.jws');
  let snapshotJws: string | null = null;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> = Promise.resolve();

  const write = (text: string): void => {
    writtenAt = options.clock.now();
    writing = writing
      .then(() => writePrivateFile(path, text))
      .catch((error: unknown) => options.warn(`cannot write ${path}: ${String(error)}`));
  };
  return {
    load: async (channel) => {
      const text = readPrivateFile(path);
      if (!text.ok) options.warn(`The stored policy is refused: ${text.error.message}`);
      if (!text.ok || text.value === null) return null;
      const [snapshot = '', confirmation = ''] = text.value.split('\n');
      const verified = await verify(channel, snapshot, confirmation);
      if (typeof verified === 'string') options.warn(`The stored policy in ${path} is refused: ${verified}`);
      else snapshotJws = snapshot;
      return typeof verified === 'string' ? null : verified;
    },
    keep: (reply) => {
      if (reply.kind === 'snapshot') {
        snapshotJws = reply.jws;
        write(`${reply.jws}\n`);
      } else if (snapshotJws !== null && options.clock.now() - writtenAt >= CONFIRMATION_INTERVAL_MS) {
        write(`${snapshotJws}\n${reply.jws}\n`);
      }
    },
    waitForWrites: () => writing,
  };
}

async function verify(
  channel: Pick<ControlChannel, 'verifyStored' | 'verifyStoredConfirmation'>,
  snapshotJws: string,
  confirmationJws: string,
): Promise<StoredSnapshot | string> {
  const snapshot = await channel.verifyStored(snapshotJws);
  if (!snapshot.ok) return snapshot.error.message;
  const { issuedAt, version } = snapshot.value;
  if (confirmationJws === '') return { snapshot: snapshot.value, confirmedAt: issuedAt };
  const confirmation = await channel.verifyStoredConfirmation(confirmationJws);
  const prolongs = confirmation.ok && confirmation.value.version === version;
  return { snapshot: snapshot.value, confirmedAt: prolongs ? confirmation.value.issuedAt : issuedAt };
}
