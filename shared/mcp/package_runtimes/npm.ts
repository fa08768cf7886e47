import { err, ok } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import { word } from '../install/plan.ts';
import { isNpmVersion, readNpmSpec } from '../package_specs.ts';
import { exactVersion } from './exact_version.ts';
import type { PackageRuntime } from './package_runtime.ts';
import { runnerArguments } from './runner_arguments.ts';

const REFUSED = new Set(
  (
    '-c --call -p --package --registry --node-options --node-arg -n --script-shell --shell --userconfig --globalconfig ' +
    '--prefix --workspace -w -r --require --import --eval -e --print --loader --inspect -x --ignore-existing --cache --git'
  ).split(' '),
);
const IMPLIED = new Set(['-y', '--yes', 'npx', 'exec', 'dlx', '-q', '--quiet', '']);

/** `npx -y id@version ...` (design section 7, Install). */
export const npmRuntime: PackageRuntime = {
  registryType: 'npm',
  hints: ['npx', 'npm', 'node', 'bun', 'bunx', 'pnpm', 'pnpx', 'yarn', 'deno'],
  program: 'npx',
  registryLabel: 'npm',
  command(item, builder) {
    const spec = readNpmSpec(item.package.identifier);
    if (spec === null) {
      const message = `Its package is called ${quoteWord(item.package.identifier)}, which is not a package name of this registry.`;
      return err({ reason: 'bad_identifier', message });
    }
    const version = exactVersion(item, spec.version, isNpmVersion, builder);
    if (!version.ok) return version;
    const isPackage = (text: string) => readNpmSpec(text)?.name === spec.name;
    const words = { program: 'npx', implied: IMPLIED, refused: REFUSED, isPackage };
    const moved = runnerArguments(item.package.runtimeArguments, words, builder);
    if (!moved.ok) return moved;
    const rest = builder.argumentsOf([...moved.value, ...item.package.packageArguments]);
    if (!rest.ok) return rest;
    const start = [word('npx'), word('-y'), word(`${spec.name}@${version.value}`)];
    return ok({ command: [...start, ...rest.value], version: version.value });
  },
};
