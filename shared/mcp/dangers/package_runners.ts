import { readNpmSpec, readNugetSpec, readPypiSpec } from '../package_specs.ts';
import { quoteWord, refuse, type Danger } from './danger.ts';
import { isOfPackage } from './unchecked_packages.ts';
import {
  type DangersOf,
  packageDangers,
  type PackageRunner,
  PATH,
  readRunner,
  specDangers,
  VERSION,
} from './runner_options.ts';
import { cargoDangers, goDangers, nixDangers } from './source_runners.ts';
import { scriptNameDangers } from './unchecked_scripts.ts';

/** Only options that npx itself knows as valueless: after any other it would read the package as the option's value. */
const NPX: PackageRunner = {
  plain: /^(?:-y|--yes|-q|--quiet|--silent|--prefer-offline|--offline|--prefer-online|--ignore-scripts)$/,
  packages: ['-p', '--package'],
  values: {},
  read: readNpmSpec,
  readsAfterPackage: false,
  example: 'name@1.2.3',
};
const NPM_EXEC: PackageRunner = { ...NPX, readsAfterPackage: true };
const BUNX: PackageRunner = { ...NPX, plain: /^(?:--bun|-y|--yes|--silent|--no-install)$/ };
const DLX: PackageRunner = { ...NPX, plain: /^(?:--silent|-s|-q|--quiet)$/ };
const UVX: PackageRunner = {
  plain:
    /^(?:-q|--quiet|-n|--no-cache|--isolated|--offline|--no-config|--no-progress|--native-tls|--no-build|--frozen|--no-env-file)$/,
  packages: ['--from', '--with'],
  values: { '-p': VERSION, '--python': VERSION, '--prerelease': /^[a-z-]+$/, '--color': /^[a-z]+$/ },
  read: readPypiSpec,
  readsAfterPackage: false,
  example: 'name@1.2.3',
};
const UV_RUN: PackageRunner = {
  ...UVX,
  plain:
    /^(?:-q|--quiet|-n|--no-cache|--isolated|--offline|--no-config|--no-progress|--frozen|--locked|--no-sync|--no-project|--no-dev|--all-extras|--active|--exact)$/,
  packages: ['--with'],
  values: { ...UVX.values, '--directory': PATH, '--project': PATH, '--extra': VERSION, '--group': VERSION },
};
const PIPX: PackageRunner = {
  ...UVX,
  plain: /^(?:-q|--quiet|--no-cache)$/,
  packages: ['--spec'],
  values: { '--python': VERSION },
};
const DNX: PackageRunner = {
  plain: /^(?:-y|--yes|--prerelease|--allow-roll-forward|--ignore-failed-sources|-q)$/,
  packages: [],
  values: { '--version': VERSION, '-v': /^[a-z]+$/, '--verbosity': /^[a-z]+$/ },
  read: readNugetSpec,
  readsAfterPackage: true,
  example: 'Name@1.2.3',
};

type RunnerRule = (args: readonly string[], dangersOf: DangersOf) => readonly Danger[];

/** Package runners by program name. */
const RUNNERS: ReadonlyMap<string, RunnerRule> = new Map<string, RunnerRule>([
  ['npx', (args, dangersOf) => packageDangers('npx', NPX, args, dangersOf)],
  ['bunx', (args, dangersOf) => packageDangers('bunx', BUNX, args, dangersOf)],
  ['pnpx', (args, dangersOf) => packageDangers('pnpx', DLX, args, dangersOf)],
  ['npm', subcommands('npm', { exec: NPM_EXEC, x: NPM_EXEC })],
  ['pnpm', subcommands('pnpm', { dlx: DLX })],
  ['yarn', subcommands('yarn', { dlx: DLX })],
  ['uvx', (args, dangersOf) => packageDangers('uvx', UVX, args, dangersOf)],
  ['uv', uvDangers],
  ['pipx', subcommands('pipx', { run: PIPX })],
  ['dnx', (args, dangersOf) => packageDangers('dnx', DNX, args, dangersOf)],
  ['dotnet', dotnetDangers],
  ['go', goDangers],
  ['nix', nixDangers],
  ['cargo', cargoDangers],
]);

/** What fetches packages of a registry and runs one, by the words that begin such a command. */
const FETCHERS: readonly (readonly [
  words: readonly string[],
  kind: 'npm' | 'pypi' | 'nuget',
  runner: PackageRunner,
])[] = [
  [['npx'], 'npm', NPX],
  [['npm', 'exec'], 'npm', NPM_EXEC],
  [['npm', 'x'], 'npm', NPM_EXEC],
  [['pnpx'], 'npm', DLX],
  [['pnpm', 'dlx'], 'npm', DLX],
  [['yarn', 'dlx'], 'npm', DLX],
  [['bunx'], 'npm', BUNX],
  [['bun', 'x'], 'npm', BUNX],
  [['uvx'], 'pypi', UVX],
  [['uv', 'tool', 'run'], 'pypi', UVX],
  [['pipx', 'run'], 'pypi', PIPX],
  [['dnx'], 'nuget', DNX],
  [['dotnet', 'dnx'], 'nuget', DNX],
  [['dotnet', 'tool', 'exec'], 'nuget', DNX],
];

/** The options of Python's runners that name the package of the program; `--with` adds others to it. */
const FROM = /^--(?:from|spec)(?:=|$)/;

/**
 * The packages that a command fetches, one of which it runs; null if it is no plain call of a package runner by its own name, or
 * if the program may be of another package.
 */
export function fetchedPackages(
  command: readonly string[],
): { readonly kind: 'npm' | 'pypi' | 'nuget'; readonly names: readonly string[] } | null {
  const found = FETCHERS.find(([words]) => words.every((word, index) => command[index] === word));
  if (found === undefined) return null;
  const [words, kind, runner] = found;
  const args = command.slice(words.length);
  const { packages, target, dangers } = readRunner(words.join(' '), runner, args);
  const [program] = target;
  if (dangers.length > 0 || program === undefined) return null;
  const options = args.slice(0, args.length - target.length);
  const isOwnPackage = packages.length === 0 || (kind === 'pypi' && !options.some((word) => FROM.test(word)));
  if (!isOwnPackage && !isOfPackage(program, packages)) return null;
  const specs = [...packages, ...(isOwnPackage ? [program] : [])].map((text) => runner.read(text));
  const names = specs.flatMap((spec) => (spec === null ? [] : [spec.name]));
  return names.length === specs.length ? { kind, names } : null;
}

/** True for a program that fetches a package, or builds a program from source, and runs it. */
export function isPackageRunner(program: string): boolean {
  return RUNNERS.has(program);
}

/** Checks the words after a package runner; null if the program is none. */
export function packageRunnerDangers(
  program: string,
  args: readonly string[],
  dangersOf: DangersOf,
): readonly Danger[] | null {
  return RUNNERS.get(program)?.(args, dangersOf) ?? null;
}

function subcommands(program: string, runners: Readonly<Record<string, PackageRunner>>): RunnerRule {
  return ([subcommand = '', ...rest], dangersOf) => {
    const runner = Object.hasOwn(runners, subcommand) ? runners[subcommand] : undefined;
    if (runner !== undefined) return packageDangers(`${program} ${subcommand}`, runner, rest, dangersOf);
    const known = Object.keys(runners).map((name) => `"${program} ${name}"`);
    return [
      refuse(
        'runner_option',
        `starts ${program} with ${quoteWord(subcommand)}, which can run a shell's line or install code; use ${known.join(' or ')}`,
      ),
    ];
  };
}

/** `uv tool run` is uvx; `uv run` starts a program in a project, or a script. */
function uvDangers(args: readonly string[], dangersOf: DangersOf): readonly Danger[] {
  if (args[0] === 'tool' && args[1] === 'run') return packageDangers('uv tool run', UVX, args.slice(2), dangersOf);
  const before = args.indexOf('run');
  const reading = readRunner('uv', UV_RUN, before < 0 ? args : args.slice(0, before));
  if (before < 0 || reading.target.length > 0) {
    return [refuse('runner_option', 'starts uv with something other than "uv run" or "uv tool run"; use one of them')];
  }
  if (reading.dangers.length > 0) return reading.dangers;
  const words = args.slice(before + 1);
  const module = words.findIndex((word) => word === '-m' || word === '--module');
  const run = readRunner('uv run', UV_RUN, module < 0 ? words : words.slice(0, module));
  const specs = [...reading.packages, ...run.packages].flatMap((text) => specDangers('uv run', UV_RUN, text));
  if (run.dangers.length > 0) return run.dangers;
  const program =
    run.target.length === 0 && module >= 0
      ? ['python', '-m', ...words.slice(module + 1)]
      : uvProgram(run.target, words, module);
  return [...specs, ...dangersOf(program)];
}

/** A Python script, or a program; the words after it belong to it. */
function uvProgram(target: readonly string[], words: readonly string[], module: number): readonly string[] {
  const whole = module < 0 ? target : [...target, ...words.slice(module)];
  const [first = ''] = whole;
  return first.endsWith('.py') || /^https?:/i.test(first) ? ['python', ...whole] : whole;
}

/**
 * `dotnet tool exec` and `dotnet dnx` are dnx; `dotnet file.dll` starts a program of this machine. `dotnet run` builds one:
 * options and any variable can set properties that choose what is built and run, so it cannot be checked.
 */
function dotnetDangers(args: readonly string[], dangersOf: DangersOf): readonly Danger[] {
  const [first = '', second] = args;
  if (first === 'dnx') return packageDangers('dotnet dnx', DNX, args.slice(1), dangersOf);
  if (first === 'tool' && (second === 'exec' || second === 'execute'))
    return packageDangers('dotnet tool exec', DNX, args.slice(2), dangersOf);
  if (first.endsWith('.dll') && !first.startsWith('-')) return scriptNameDangers('dotnet', first, () => false);
  return [
    refuse('runner_option', `starts dotnet with ${quoteWord(first)}; use "dotnet dnx", or the .dll that a build made`),
  ];
}
