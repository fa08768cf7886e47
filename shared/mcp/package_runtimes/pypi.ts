import { err, ok } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import { word } from '../install/plan.ts';
import { isPypiVersion, readPypiSpec } from '../package_specs.ts';
import { exactVersion } from './exact_version.ts';
import type { PackageRuntime } from './package_runtime.ts';
import { runnerArguments } from './runner_arguments.ts';

const REFUSED = new Set(
  (
    '-m --module -c --from --with --with-editable --with-requirements -p --python --index --index-url --default-index ' +
    '--extra-index-url -i --find-links -f --env-file --directory --project --config-file --cache-dir --editable -e --refresh ' +
    '--spec --pip-args --no-verify-hashes --allow-insecure-host --trusted-host -r --requirement'
  ).split(' '),
);
const IMPLIED = new Set(['uvx', 'uv', 'tool', 'run', '-q', '--quiet', '']);

/** `uvx id@version ...` (design section 7, Install). */
export const pypiRuntime: PackageRuntime = {
  registryType: 'pypi',
  hints: ['uvx', 'uv', 'python', 'python3', 'pipx', 'pip'],
  program: 'uvx',
  registryLabel: 'pypi',
  command(item, builder) {
    const spec = readPypiSpec(item.package.identifier);
    if (spec === null) {
      const message = `Its package is called ${quoteWord(item.package.identifier)}, which is not a package name of this registry.`;
      return err({ reason: 'bad_identifier', message });
    }
    const version = exactVersion(item, spec.version, isPypiVersion, builder);
    if (!version.ok) return version;
    const isPackage = (text: string) => sameProject(readPypiSpec(text)?.name ?? '', spec.name);
    const words = { program: 'uvx', implied: IMPLIED, refused: REFUSED, isPackage };
    const moved = runnerArguments(item.package.runtimeArguments, words, builder);
    if (!moved.ok) return moved;
    const rest = builder.argumentsOf([...moved.value, ...item.package.packageArguments]);
    if (!rest.ok) return rest;
    const plain = version.value.replace(/^v/i, '');
    return ok({ command: [word('uvx'), word(`${spec.name}@${plain}`), ...rest.value], version: plain });
  },
};

/** One project can be written in several ways (PEP 503). */
function sameProject(name: string, other: string): boolean {
  return normalProject(name) === normalProject(other);
}

function normalProject(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, '-');
}
