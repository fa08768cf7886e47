import { word } from '../install/plan.ts';
import { isNugetVersion, readNugetSpec } from '../package_specs.ts';
import { runnerRuntime } from './runner_runtime.ts';

/** `dnx id@version --yes`, and after `--` the program's own arguments (design section 7, Install). */
export const nugetRuntime = runnerRuntime({
  registryType: 'nuget',
  hints: ['dnx', 'dotnet'],
  program: 'dnx',
  implied: ['dnx', 'dotnet', 'tool', 'exec', '--yes', '-y', '--', ''],
  refused:
    '--source -s --add-source --configfile --tool-path --framework -f --arch -a --version --interactive --prerelease --no-http-cache',
  readSpec: readNugetSpec,
  isVersion: isNugetVersion,
  normalName: (name) => name.toLowerCase(),
  release: (version) => version,
  start(pinned, rest) {
    // dnx reads its own options after the package too, up to `--`.
    const own = rest.length === 0 ? [] : [word('--'), ...rest];
    return [word('dnx'), word(pinned), word('--yes'), ...own];
  },
});
