import { word } from '../install/plan.ts';
import { isNpmVersion, readNpmSpec } from '../package_specs.ts';
import { runnerRuntime } from './runner_runtime.ts';

/** `npx -y id@version ...` (design section 7, Install). */
export const npmRuntime = runnerRuntime({
  registryType: 'npm',
  hints: ['npx', 'npm', 'node', 'bun', 'bunx', 'pnpm', 'pnpx', 'yarn', 'deno'],
  program: 'npx',
  implied: ['-y', '--yes', 'npx', 'exec', 'dlx', '-q', '--quiet', ''],
  refused:
    '-c --call -p --package --registry --node-options --node-arg -n --script-shell --shell --userconfig --globalconfig ' +
    '--prefix --workspace -w -r --require --import --eval -e --print --loader --inspect -x --ignore-existing --cache --git',
  readSpec: readNpmSpec,
  isVersion: isNpmVersion,
  normalName: (name) => name,
  release: (version) => version,
  start: (pinned, rest) => [word('npx'), word('-y'), word(pinned), ...rest],
});
