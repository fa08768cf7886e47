import { type PackageSpec, readNpmSpec } from './package_specs.ts';

/** The npm package that a command runs, and the arguments of its program. */
interface NpmCommand {
  readonly spec: PackageSpec;
  readonly args: readonly string[];
}

/** Options of npx that change nothing if the package is there already. */
const PLAIN = /^(?:-y|--yes|-q|--quiet|--silent|--prefer-offline|--prefer-online|--ignore-scripts)$/;

/**
 * Reads `npx [-y] [--] package[@version] arguments` as npx does. Null for every other program and for every option that npx
 * has to act on itself, such as `--package`: such a command is started as it is.
 */
export function readNpmCommand(command: readonly string[]): NpmCommand | null {
  const [program, ...words] = command;
  if (program !== 'npx') return null;
  const first = words.findIndex((word) => !PLAIN.test(word));
  const at = words[first] === '--' ? first + 1 : first;
  const spec = first < 0 ? null : readNpmSpec(words[at] ?? '');
  return spec === null ? null : { spec, args: words.slice(at + 1) };
}

/** `svc mcp consent` with the install scripts of these packages (`name@version`), which it runs. */
export function scriptsCommand(server: string, names: readonly string[]): string {
  const packages = [...new Set(names.map((name) => name.slice(0, name.lastIndexOf('@'))))];
  return ['svc mcp consent', server, ...packages.map((each) => `--scripts ${each}`)].join(' ');
}

/** The package as npm is asked for it; without a version it is the newest release at the time of the install. */
export function npmSpecText({ name, version }: PackageSpec): string {
  return version === null || version === '' ? `${name}@latest` : `${name}@${version}`;
}
