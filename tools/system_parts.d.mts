/** The PATH of the tests: the one given, and a system's own programs after it. */
export function withSystemFolders(path?: string): string;
/** The PATH with the folder of Python itself before that of a version manager's script for it. */
export function withRealPython(path?: string): string;
/** What the tests need of a Python by itself. */
export const STANDARD_MODULES: string;
/** True when a shell finds the probe to succeed. */
export function succeeds(probe: string): boolean;
/** The Python that has the modules, or null. */
export function pythonWith(modules: string): string | null;
/** The Ruby that has the router of Rails and a server for it, or null. */
export function rubyWithRails(): string | null;
/** The AWS CLI, or null. */
export function awsCli(): string | null;
/** The uploader of Python packages, or null. */
export function twine(): string | null;
/** True where the user of the tests can run an engine without being root. */
export function rootlessIsThere(): boolean;
/** The Debian packages of everything that the end-to-end tests drive. */
export const PACKAGES: readonly string[];
/** What the end-to-end tests drive and this machine lacks, with the Debian packages that bring it. */
export function missingParts(): readonly Part[];
/** Of these, what no container can be tried without. */
export function missingForContainers(): readonly Part[];

interface Part {
  readonly name: string;
  readonly packages: readonly string[];
}
