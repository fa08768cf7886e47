import { err, ok } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import { word } from '../install/plan.ts';
import { isNugetVersion, readNugetSpec } from '../package_specs.ts';
import { exactVersion } from './exact_version.ts';
import type { PackageRuntime } from './package_runtime.ts';
import { runnerArguments } from './runner_arguments.ts';

const REFUSED = new Set(
  '--source -s --add-source --configfile --tool-path --framework -f --arch -a --version --interactive --prerelease --no-http-cache'.split(
    ' ',
  ),
);
const IMPLIED = new Set(['dnx', 'dotnet', 'tool', 'exec', '--yes', '-y', '--', '']);

/** `dnx id@version --yes`, and after `--` the program's own arguments (design section 7, Install). */
export const nugetRuntime: PackageRuntime = {
  registryType: 'nuget',
  hints: ['dnx', 'dotnet'],
  program: 'dnx',
  registryLabel: 'nuget',
  command(item, builder) {
    const spec = readNugetSpec(item.package.identifier);
    if (spec === null) {
      const message = `Its package is called ${quoteWord(item.package.identifier)}, which is not a package name of this registry.`;
      return err({ reason: 'bad_identifier', message });
    }
    const version = exactVersion(item, spec.version, isNugetVersion, builder);
    if (!version.ok) return version;
    const isPackage = (text: string) => readNugetSpec(text)?.name.toLowerCase() === spec.name.toLowerCase();
    const words = { program: 'dnx', implied: IMPLIED, refused: REFUSED, isPackage };
    const moved = runnerArguments(item.package.runtimeArguments, words, builder);
    if (!moved.ok) return moved;
    const rest = builder.argumentsOf([...moved.value, ...item.package.packageArguments]);
    if (!rest.ok) return rest;
    // dnx reads its own options after the package too, up to `--`.
    const own = rest.value.length === 0 ? [] : [word('--'), ...rest.value];
    const start = [word('dnx'), word(`${spec.name}@${version.value}`), word('--yes')];
    return ok({ command: [...start, ...own], version: version.value });
  },
};
