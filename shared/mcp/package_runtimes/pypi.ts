import { word } from '../install/plan.ts';
import { isPypiVersion, readPypiSpec } from '../package_specs.ts';
import { runnerRuntime } from './runner_runtime.ts';

/** `uvx id@version ...` (design section 7, Install). */
export const pypiRuntime = runnerRuntime({
  registryType: 'pypi',
  hints: ['uvx', 'uv', 'python', 'python3', 'pipx', 'pip'],
  program: 'uvx',
  implied: ['uvx', 'uv', 'tool', 'run', '-q', '--quiet', ''],
  refused:
    '-m --module -c --from --with --with-editable --with-requirements -p --python --index --index-url --default-index ' +
    '--extra-index-url -i --find-links -f --env-file --directory --project --config-file --cache-dir --editable -e --refresh ' +
    '--spec --pip-args --no-verify-hashes --allow-insecure-host --trusted-host -r --requirement',
  readSpec: readPypiSpec,
  isVersion: isPypiVersion,
  // One project can be written in several ways (PEP 503).
  normalName: (name) => name.toLowerCase().replaceAll(/[-_.]+/g, '-'),
  release: (version) => version.replace(/^v/i, ''),
  start: (pinned, rest) => [word('uvx'), word(pinned), ...rest],
});
