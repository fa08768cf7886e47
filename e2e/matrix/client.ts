import type { MatrixWorld, ServiceName } from './world.ts';

/** One row of the matrix: a third-party client, and how it works behind `svc run`. */
export interface MatrixClient {
  readonly name: string;
  /** A shell line that succeeds if the client is installed. */
  readonly probe: string;
  /** Debian packages that contain it; null if the locked dependencies do. */
  readonly packages: string | null;
  /** The variables of `svc run` that it reads. */
  readonly sets: readonly string[];
  /** Whether `svc run` needs `--relay` for it. */
  readonly relay?: boolean;
  /** What the test does with it. */
  readonly tried: string;
  /** Continues "works" with what it also needs, or "does not work:" with the reason. */
  readonly note?: string;
  /** False: the test shows that the client cannot work. */
  readonly works: boolean;
  readonly service: ServiceName;
  /** Runs the client; fails unless everything went as the row says. */
  use(world: MatrixWorld): Promise<void>;
}

/** The variables of `svc run` for every client that reads the usual proxy variables. */
export const PROXY = 'HTTPS_PROXY';
