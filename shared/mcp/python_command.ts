import { isPypiName, isPypiVersion, type PackageSpec, readPypiSpec } from './package_specs.ts';

/** A package of a Python index, and which of its programs is started. */
export interface PythonSpec extends PackageSpec {
  readonly kind: 'pypi';
  /** Such as `[cli]`; empty if there are none. */
  readonly extras: string;
  readonly program: string;
}

/** The Python package that a command runs, and the arguments of its program. */
interface PythonCommand {
  readonly spec: PythonSpec;
  readonly args: readonly string[];
}

/** The programs that fetch a package and start it, with the option that names its package apart from its program. */
const RUNNERS: readonly (readonly [words: readonly string[], from: string])[] = [
  [['uvx'], '--from'],
  [['uv', 'tool', 'run'], '--from'],
  [['pipx', 'run'], '--spec'],
];

/** Options that change nothing if the package is there already. */
const PLAIN =
  /^(?:-q|--quiet|-n|--no-cache|--isolated|--no-config|--no-progress|--native-tls|--no-build|--no-env-file)$/;

/**
 * Reads `uvx [--from package] program[@version] arguments`, and the same of `uv tool run` and `pipx run`. Null for every other
 * program, for ranges of versions, and for every option that the runner has to act on itself, such as `--python` and `--with`:
 * such a command is started as it is.
 */
export function readPythonCommand(command: readonly string[]): PythonCommand | null {
  const found = RUNNERS.find(([words]) => words.every((word, index) => command[index] === word));
  if (found === undefined) return null;
  const [runner, from] = found;
  const words = command.slice(runner.length);
  let at = words.findIndex((word) => !PLAIN.test(word));
  let named: string | null = null;
  if (at >= 0 && words[at] === from) {
    named = words[at + 1] ?? '';
    at += 2;
  }
  const program = words[at] ?? '';
  const spec = readSpec(named ?? program, named === null ? null : program);
  return at < 0 || spec === null ? null : { spec, args: words.slice(at + 1) };
}

/** `program`: if the package is named apart from it. */
function readSpec(text: string, program: string | null): PythonSpec | null {
  const read = readPypiSpec(text);
  if (read === null || (program !== null && !isPypiName(program))) return null;
  const version = read.version === 'latest' ? null : read.version;
  if (version !== null && !isPypiVersion(version)) return null;
  const [extras = ''] = /\[[^\]]*\]/.exec(text) ?? [];
  return {
    kind: 'pypi',
    name: normalPythonName(read.name),
    version,
    isExact: version !== null,
    extras: extras.toLowerCase(),
    program: program ?? read.name,
  };
}

/** One project can be written in several ways (PEP 503). */
export function normalPythonName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, '-');
}

/** The package as pip is asked for it; without a version it is the newest release at the time of the install. */
export function pythonRequirement({ name, extras, version }: PythonSpec): string {
  return `${name}${extras}${version === null ? '' : `==${version}`}`;
}
