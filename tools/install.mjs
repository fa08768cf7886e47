// Installs the locked dependencies if they are missing or stale, else does nothing.
// node tools/install.mjs [--omit=dev]
// `--omit=dev` is satisfied by a full install too. Plain JavaScript: the system's Node (20) runs it before anything is
// installed.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LOCK = '.svc-install.lock';
const LOCK_POLL_MS = 250;
const LOCK_STALE_MS = 15 * 60_000;

/** The install mode for the arguments, or a sentence with what is wrong. */
export function parseArguments(args) {
  const unknown = args.find((arg) => arg !== '--omit=dev');
  if (unknown !== undefined) return { error: `unknown argument ${JSON.stringify(unknown)}: only --omit=dev is known` };
  return { mode: args.length > 0 ? 'production' : 'full' };
}

/**
 * Why an install is needed, in words, or null. `locked` is package-lock.json's `packages`; `installed` is the same part of
 * the record that npm writes into node_modules after a complete install (null: there is none). Optional packages may be
 * missing: npm leaves out those of other platforms.
 */
export function staleness(locked, installed, mode, isThere) {
  if (installed === null) return 'missing';
  for (const [path, entry] of Object.entries(locked)) {
    const development = entry.dev || entry.devOptional;
    if (path === '' || entry.optional || entry.devOptional || (development && mode === 'production')) continue;
    const found = installed[path];
    if (found === undefined && development) return 'installed without the development tools';
    const same = found?.version === entry.version && (found.integrity ?? null) === (entry.integrity ?? null);
    if (!same || !isThere(path)) return 'stale';
  }
  return null;
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages ?? null;
  } catch {
    return null;
  }
}

/** {@link staleness} of the checkout in `root`. */
export function stalenessOf(root, mode) {
  const installed = packagesOf(join(root, 'node_modules', '.package-lock.json'));
  const isThere = (path) => existsSync(join(root, path, 'package.json'));
  return staleness(packagesOf(join(root, 'package-lock.json')) ?? {}, installed, mode, isThere);
}

const say = (text) => process.stderr.write(`${text}\n`);

/** Only one install at a time writes node_modules: a second one waits, and then finds nothing to do. */
async function takeLock(root) {
  const lock = join(root, LOCK);
  for (let told = false; ; told = true) {
    try {
      writeFileSync(lock, `${process.pid}\n`, { flag: 'wx' });
      return () => rmSync(lock, { force: true });
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (lockIsStale(lock)) rmSync(lock, { force: true });
    else if (!told) say('Another install is running here; waiting for it ...');
    await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
  }
}

function lockIsStale(lock) {
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    if (Date.now() - statSync(lock).mtimeMs > LOCK_STALE_MS) return true;
    if (!Number.isInteger(pid) || pid <= 0) return false;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

/** Runs `npm ci`; its output goes to stderr, so that stdout stays the program's own. */
function npmCi(root, mode) {
  // Without its warnings: they concern the system's Node, which runs only this script.
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...(mode === 'production' ? ['--omit=dev'] : [])];
  return new Promise((resolve) => {
    const child = spawn('npm', args, { cwd: root, stdio: ['ignore', 2, 2], env: npmEnvironment(process.env) });
    child.on('error', (error) =>
      resolve(error.code === 'ENOENT' ? 'npm was not found: install Node with npm' : error.message),
    );
    child.on('close', (code, signal) =>
      resolve(code === 0 ? null : `npm ci ended with ${signal ?? `exit status ${code}`}`),
    );
  });
}

/** The environment without the variables that an outer `npm run` set: its `omit` and its prefix would change this install. */
export function npmEnvironment(env) {
  const dropped =
    /^(npm_(config_(omit|include|prefix|global|local_prefix|production|package_lock.*)|package_.*|lifecycle_.*)|NODE_ENV)$/i;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.test(name)));
}

async function install(root, mode) {
  const release = await takeLock(root);
  try {
    const reason = stalenessOf(root, mode);
    if (reason === null) return 0;
    say(`Dependencies are ${reason}: installing the locked ones (once, about half a minute) ...`);
    const began = Date.now();
    const problem = await npmCi(root, mode);
    if (problem !== null) {
      say(`The dependencies could not be installed: ${problem}.`);
      say("See npm's output above. Check the network and the free space, then run the same command again.");
      return 1;
    }
    say(`Dependencies installed in ${Math.round((Date.now() - began) / 1000)} s.`);
    return 0;
  } finally {
    release();
  }
}

async function main() {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const parsed = parseArguments(process.argv.slice(2));
  if (parsed.error !== undefined) {
    say(`tools/install.mjs: ${parsed.error}`);
    return 2;
  }
  if (packagesOf(join(root, 'package-lock.json')) === null) {
    say(`package-lock.json in ${root} is missing or damaged: get a complete checkout`);
    return 1;
  }
  return stalenessOf(root, parsed.mode) === null ? 0 : install(root, parsed.mode);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = await main();
}
