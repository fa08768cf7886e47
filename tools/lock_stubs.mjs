// Completes package-lock.json: adds an entry for every optional platform package that a locked package names, even if the
// registry that produced the lock does not have it, so that `npm ci` accepts the lock on every platform. Run after each
// change of dependencies: `node tools/lock_stubs.mjs`, or `node tools/lock_stubs.mjs e2e/agents` for the agents of the tests.
import { readFileSync, writeFileSync } from 'node:fs';

const OS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'windows'];
const CPU = ['arm64', 'arm', 'x64', 'ia32', 'ppc64', 'riscv64', 's390x', '64'];

const file = new URL(`../${process.argv[2] ?? '.'}/package-lock.json`, import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));
const locked = new Set(Object.keys(lock.packages).map((path) => path.split('node_modules/').pop()));
const added = {};
for (const entry of Object.values(lock.packages)) {
  for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
    const words = name.split(/[/-]/);
    const os = OS.find((word) => words.includes(word));
    const cpu = CPU.find((word) => words.includes(word));
    if (locked.has(name) || os === undefined || cpu === undefined) continue;
    added[`node_modules/${name}`] = {
      version: range.replace(/^[\^~]/, ''),
      optional: true,
      os: [os === 'windows' ? 'win32' : os],
      cpu: [cpu === '64' ? 'x64' : cpu],
    };
  }
}
const packages = { ...lock.packages, ...added };
lock.packages = Object.fromEntries(
  Object.keys(packages)
    .toSorted()
    .map((path) => [path, packages[path]]),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${Object.keys(added).length} entries added\n`);
