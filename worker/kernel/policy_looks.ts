import type { Database } from '../store/database.ts';
import { readStandings, type SidecarStanding } from '../store/sidecars.ts';
import type { Clock } from './clock.ts';

/** How often a waiting sidecar is looked up in the database. */
export const LOOK_MS = 1_000;

interface Waiting {
  readonly sidecarId: string;
  readonly database: Database;
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
}

/** What a waiting poll of a sidecar learns from the database. */
export interface PolicyLooks {
  /** The sidecar's standing at the next look, which is at most {@link LOOK_MS} away; null if there is no such sidecar. */
  next(waiting: Waiting): Promise<SidecarStanding | null>;
}

/** The sidecar's standing now; null if there is no such sidecar. */
export async function lookNow(database: Database, sidecarId: string): Promise<SidecarStanding | null> {
  return (await readStandings(database, [sidecarId])).get(sidecarId) ?? null;
}

/** For a runtime whose requests cannot wait for each other (workerd): each looks for itself. */
export class OwnLooks implements PolicyLooks {
  readonly #clock: Pick<Clock, 'sleep'>;

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
  }

  async next({ sidecarId, database, signal }: Waiting): Promise<SidecarStanding | null> {
    await this.#clock.sleep(LOOK_MS, signal);
    return lookNow(database, sidecarId);
  }
}

/** A look that has not been made, and who waits for it. */
interface Planned {
  readonly sidecarIds: Set<string>;
  readonly found: Promise<ReadonlyMap<string, SidecarStanding>>;
}

/**
 * For a runtime where one program serves all requests: one statement looks for all who wait, so a second costs about the same for ten
 * sidecars and for a thousand.
 */
export class SharedLooks implements PolicyLooks {
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #stopping: AbortSignal;
  #planned: Planned | null = null;

  /** `stopping`: who waits then is answered at once. */
  constructor(clock: Pick<Clock, 'sleep'>, stopping: AbortSignal) {
    this.#clock = clock;
    this.#stopping = stopping;
  }

  async next({ sidecarId, database }: Waiting): Promise<SidecarStanding | null> {
    this.#planned ??= this.#plan(database);
    this.#planned.sidecarIds.add(sidecarId);
    return (await this.#planned.found).get(sidecarId) ?? null;
  }

  #plan(database: Database): Planned {
    const sidecarIds = new Set<string>();
    const look = async () => {
      await this.#clock.sleep(LOOK_MS, this.#stopping);
      this.#planned = null;
      return readStandings(database, [...sidecarIds]);
    };
    return { sidecarIds, found: look() };
  }
}
