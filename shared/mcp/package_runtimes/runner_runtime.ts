import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import type { NotInstallable, PlanArgument } from '../install/plan.ts';
import type { PlanBuilder } from '../install/plan_builder.ts';
import type { PackageSpec } from '../package_specs.ts';
import type { RegistryArgument } from '../registry/registry_input.ts';
import type { PackageInEntry, PackageRuntime } from './package_runtime.ts';

/** A program that fetches a package by its name and version, and runs it. */
interface Runner {
  readonly registryType: string;
  readonly hints: readonly string[];
  readonly program: string;
  /** Words that the derived command already has. */
  readonly implied: readonly string[];
  /** Options, separated by spaces, that decide where code comes from, or which code runs. */
  readonly refused: string;
  /** A package as it is named; null if this is not a package name of the registry. */
  readonly readSpec: (text: string) => PackageSpec | null;
  readonly isVersion: (version: string) => boolean;
  /** A name in the one way in which it is compared. */
  readonly normalName: (name: string) => string;
  /** The release as the program is given it. */
  readonly release: (version: string) => string;
  /** The command that starts `name@version`. */
  readonly start: (pinned: string, rest: readonly PlanArgument[]) => readonly PlanArgument[];
}

/** A runtime that starts the packages of one registry by a runner. */
export function runnerRuntime(runner: Runner): PackageRuntime {
  const { registryType, hints, program, readSpec, normalName } = runner;
  return {
    registryType,
    hints,
    program,
    registryLabel: registryType,
    command(item, builder) {
      const { identifier, runtimeArguments, packageArguments } = item.package;
      const spec = readSpec(identifier);
      if (spec === null) {
        const message = `Its package is called ${quoteWord(identifier)}, which is not a package name of this registry.`;
        return err({ reason: 'bad_identifier', message });
      }
      const exact = exactVersion(item, spec.version, runner.isVersion, builder);
      if (!exact.ok) return exact;
      const isPackage = (text: string): boolean => normalName(readSpec(text)?.name ?? '') === normalName(spec.name);
      const moved = runnerArguments(runtimeArguments, runner, isPackage, builder);
      if (!moved.ok) return moved;
      const rest = builder.argumentsOf([...moved.value, ...packageArguments]);
      if (!rest.ok) return rest;
      const version = runner.release(exact.value);
      return ok({ command: runner.start(`${spec.name}@${version}`, rest.value), version });
    },
  };
}

/**
 * The exact version of a package: its own or, if it names none (or `latest`), the entry's. A range, a tag, or anything else
 * is refused, because the same program must be installed tomorrow.
 */
function exactVersion(
  { entry, package: { version } }: PackageInEntry,
  inIdentifier: string | null,
  isExact: (version: string) => boolean,
  builder: PlanBuilder,
): Result<string, NotInstallable> {
  const own = inIdentifier ?? version;
  if (own !== null && own !== 'latest') {
    if (isExact(own)) return ok(own);
    return refuseUnpinned(`Its package names the version ${quoteWord(own)}, which is not one exact release.`);
  }
  // A version that is not a release ("0.0.1-seed") was made up by a registry, not by the publisher.
  if (entry.version === null || entry.version.includes('-') || !isExact(entry.version)) {
    return refuseUnpinned(
      own === null ? 'Its package names no version.' : 'Its package names no version but "latest".',
    );
  }
  builder.warn(
    'version_from_entry',
    `the package names no exact version: the entry's ${quoteWord(entry.version)} is taken`,
  );
  return ok(entry.version);
}

function refuseUnpinned(problem: string): Result<never, NotInstallable> {
  const message = `${problem} Add the server by hand with the version that you mean.`;
  return err({ reason: 'unpinned_version', message });
}

/**
 * The arguments that an entry has for the package's runner, reduced to those of the package itself. An entry cannot give a
 * runner arguments: words that the runner gets anyway are dropped, words that would change the code are refused, and unknown
 * words are passed to the package's program, after its name.
 */
function runnerArguments(
  list: readonly RegistryArgument[],
  { program, refused, implied }: Runner,
  isPackage: (text: string) => boolean,
  builder: PlanBuilder,
): Result<readonly RegistryArgument[], NotInstallable> {
  const moved: RegistryArgument[] = [];
  for (const argument of list) {
    const text = argument.type === 'named' ? argument.name : (argument.value ?? '');
    const [name = ''] = text.split('=');
    if (refused.split(' ').includes(name)) {
      const message = `It asks ${program} for the option ${quoteWord(name)}, which decides what code is run. Add the server by hand if you trust it.`;
      return err({ reason: 'argument_not_allowed', message });
    }
    if (implied.includes(text) || isPackage(text) || isEmpty(argument)) continue;
    moved.push(argument);
    const what = text === '' ? 'an argument' : `the argument ${quoteWord(text)}`;
    builder.warn('argument_moved', `${what} is given to the program of the package, not to ${program}`);
  }
  return ok(moved);
}

function isEmpty(argument: RegistryArgument): boolean {
  return argument.type === 'positional' && argument.value === null && !argument.isRequired;
}
