import type { InstallSpec } from '../../shared/mcp/package_command.ts';
import type { Result } from '../../shared/model/result.ts';

/** What a lock file says. */
export interface LockedInstall {
  /** The exact release of the package itself. */
  readonly release: string;
  /** Where each archive for this machine is fetched. */
  readonly tarballs: readonly string[];
  /** `name@version` of each package that has install scripts. */
  readonly withScripts: readonly string[];
}

/** How an installed package is started. */
export interface PackageStart {
  /** The program with its own arguments, before those of the server. */
  readonly command: readonly string[];
  /** The directory of the programs of its dependencies. */
  readonly programs: string;
  /** The same command in a container of `image`; there, paths of the folder are those of the mount. */
  readonly inContainer: readonly string[];
  /** Null for the image that belongs to the server's command. */
  readonly image: string | null;
  /** Files and folders of this machine that the program needs beside the system and its package. */
  readonly needs: readonly string[];
}

/**
 * How the packages of one kind of registry are installed. Everything happens in a folder that the store gives, and only the store
 * decides whether the folder is used. Errors are the rest of a sentence about the package.
 */
export interface PackageInstaller<Spec extends InstallSpec = InstallSpec> {
  /** The name of the lock file in the folder. */
  readonly lockFile: string;
  /** Decides the dependencies, and writes nothing but the lock. No code of a package runs. */
  resolve(spec: Spec, folder: string, signal: AbortSignal): Promise<Result<string, string>>;
  /** Checks a lock before anything is fetched by it. */
  read(lock: string, spec: Spec): Result<LockedInstall, string>;
  /** Fetches exactly what the lock says, and compares each archive with its hash. Runs the scripts that are named, and no other. */
  fetch(lock: string, spec: Spec, run: FetchRun): Promise<Result<void, string>>;
  /** The program as a path in the folder; what is there may be hostile. */
  findProgram(folder: string, spec: Spec): Result<string, string>;
  /** Whether this machine can install the lock again; the error says what to do instead. */
  checkRepair(lock: string, spec: Spec, folder: string, signal: AbortSignal): Promise<Result<void, string>>;
  /** Null if this machine cannot start it any more, so that it has to be installed again. */
  startOf(folder: string, program: string, lock: string, spec: Spec): PackageStart | null;
}

export interface FetchRun {
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly scripts: readonly string[];
}
