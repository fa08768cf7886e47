import type { PackageSpec } from '../package_specs.ts';
import { hasReference } from '../references.ts';
import { markUnchecked, quoteWord, refuse, warn, type Danger } from './danger.ts';
import { isInterpreter } from './interpreters.ts';
import { isContainerRuntime } from './program_names.ts';
import { isOfPackage, packageNameDangers } from './unchecked_packages.ts';

/** The options that a runner may be given. All others are refused. */
export interface RunnerOptions {
  /** Options without a value that do not affect where the code comes from. */
  readonly plain: RegExp;
  /** Options whose value is a package. */
  readonly packages: readonly string[];
  /** Options with another value, and the allowed values. */
  readonly values: Readonly<Record<string, RegExp>>;
  /** True if options may also follow the package, up to `--`. */
  readonly readsAfterPackage: boolean;
}

/** The allowed ways to start a server with a program that fetches and runs a package. */
export interface PackageRunner extends RunnerOptions {
  readonly read: (text: string) => PackageSpec | null;
  readonly example: string;
}

/** A version, or a plain name. */
export const VERSION = /^[\w.@+-]+$/;
/** An absolute path. */
export const PATH = /^(?:\/|[a-z]:[\\/])[^\p{Cc}]*$/iu;

/** The parsed words of a runner. */
interface RunnerReading {
  readonly packages: readonly string[];
  /** The first word that is not an option, and those after it. */
  readonly target: readonly string[];
  readonly dangers: readonly Danger[];
}

/** Checks the command that a runner starts. */
export type DangersOf = (command: readonly string[]) => readonly Danger[];

/** Checks the words after a runner: its options, and the package to run. */
export function packageDangers(
  program: string,
  runner: PackageRunner,
  args: readonly string[],
  dangersOf: DangersOf,
): readonly Danger[] {
  const reading = readRunner(program, runner, args);
  if (reading.dangers.length > 0) return reading.dangers;
  const [target, ...rest] = reading.target;
  if (target === undefined)
    return [
      refuse('runner_option', `starts ${program} without a package; name one, such as ${quoteWord(runner.example)}`),
    ];
  const specs = reading.packages.flatMap((text) => specDangers(program, runner, text));
  // If packages are named separately, the target may also be a program from the system's own path: a shell, an interpreter.
  if (reading.packages.length > 0)
    return [...specs, ...findStartedDangers(reading.packages, [target, ...rest], dangersOf)];
  return [...specDangers(program, runner, target), ...packageNameDangers(program, target, isInterpreter)];
}

/**
 * The target beside the packages: if its name matches one of them, it is that package's program, unless it may be a program of the
 * machine that runs what its arguments say (`npx -p docker-tools docker run IMAGE`). Otherwise it is any program of the packages or of
 * the machine: a runner looks for the packages' programs first, so a launcher's name says nothing.
 */
function findStartedDangers(
  packages: readonly string[],
  command: readonly string[],
  dangersOf: DangersOf,
): readonly Danger[] {
  const dangers = dangersOf(command);
  const [name = ''] = command;
  const more = packageNameDangers('its runner', name, (one) => isInterpreter(one) || isContainerRuntime(one));
  if (more.length > 0) return [...dangers, ...more];
  const isTheirs = /^[\w.@+-]+$/.test(name) && isOfPackage(name, packages);
  if (isTheirs) return dangers.filter(({ severity }) => severity !== 'unchecked');
  if (dangers.some(({ severity }) => severity !== 'warn')) return dangers;
  const message = `has its runner start ${quoteWord(name)}, which may be a program of its packages that has this name`;
  return [...dangers, markUnchecked(message)];
}

/** The options before the target, read as the runner does. The first unknown one ends the parsing with a refusal. */
export function readRunner(program: string, runner: RunnerOptions, args: readonly string[]): RunnerReading {
  const packages: string[] = [];
  const target: string[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (word === '--') return { packages, target: [...target, ...args.slice(index + 1)], dangers: [] };
    if (!word.startsWith('-')) {
      if (!runner.readsAfterPackage) return { packages, target: args.slice(index), dangers: [] };
      target.push(word);
      continue;
    }
    const equals = word.startsWith('--') ? word.indexOf('=') : -1;
    const name = equals < 0 ? word : word.slice(0, equals);
    const hasValue = runner.packages.includes(name) || Object.hasOwn(runner.values, name);
    const value = equals >= 0 ? word.slice(equals + 1) : hasValue ? (args[(index += 1)] ?? '') : null;
    // Otherwise whoever stores the credential would choose the project or the package, after somebody consented to it.
    if (hasReference(word) || hasReference(value ?? ''))
      return { packages, target, dangers: [optionDanger(program, word)] };
    const isFine = value === null ? runner.plain.test(word) : hasValue && runner.values[name]?.test(value) !== false;
    if (!isFine) return { packages, target, dangers: [optionDanger(program, word)] };
    if (value !== null && runner.packages.includes(name)) packages.push(value);
  }
  return { packages, target, dangers: [] };
}

export function specDangers(program: string, runner: PackageRunner, text: string): readonly Danger[] {
  const spec = runner.read(text);
  if (spec === null) {
    return [
      refuse(
        'remote_code',
        `has ${program} run ${quoteWord(text)}, which is no package of its registry; write ${quoteWord(runner.example)}`,
      ),
    ];
  }
  if (spec.isExact) return [];
  return [
    warn(
      'unpinned_version',
      `runs ${quoteWord(text)} without an exact version: it can be other code tomorrow; write ${quoteWord(runner.example)}`,
    ),
  ];
}

function optionDanger(program: string, word: string): Danger {
  return refuse(
    'runner_option',
    `gives ${program} the option ${quoteWord(word)}, with which it can run or fetch other code; remove it`,
  );
}
