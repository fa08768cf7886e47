import type { MatrixWorld, ServiceName } from './world.ts';

/** One row of the matrix: a client nobody here wrote, and how it fares behind `svc run`. */
export interface MatrixClient {
  readonly name: string;
  /** A shell line that succeeds where the client is installed. */
  readonly probe: string;
  /** Debian packages that bring it; null when the locked dependencies do. */
  readonly packages: string | null;
  /** The variables of `svc run` that it reads. */
  readonly sets: readonly string[];
  /** Whether `svc run` needs `--relay` for it. */
  readonly relay?: boolean;
  /** What is done with it here. */
  readonly tried: string;
  /** Continues "works" with what else it needs, or "does not work:" with the reason. */
  readonly note?: string;
  /** False: it is shown here that the client does not get through. */
  readonly works: boolean;
  readonly service: ServiceName;
  /** Does it, and fails unless all of it went as the row says. */
  use(world: MatrixWorld): Promise<void>;
}

/** What `svc run` sets for every client that reads the usual proxy variables. */
export const PROXY = 'HTTPS_PROXY';
