// `npm test`: every check, the unit tests and the end-to-end tests; `--quick` leaves out the end-to-end tests, and unit
// tests that passed and have not changed since; `--quick --all` only the end-to-end tests.
// The last line is `N passed, N failed, N skipped`, each test counted once and each check as one. With CI=true a skip fails.
// Plain JavaScript: the system's Node (20) starts it, and it restarts under the locked Node.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { missingParts, succeeds, withSystemFolders } from './system_parts.mjs';
import { keyTests, PassedTests, readFiles } from './unchanged_tests.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BIN = join(ROOT, 'node_modules', '.bin');
const QUICK = process.argv.includes('--quick');
const ALL = !QUICK || process.argv.includes('--all');
const CI = process.env.CI === 'true';
/**
 * Tests wait a part of their time: for files, sockets and timers, and end-to-end tests for other programs. More of them than
 * there are processors keep all processors busy.
 */
const PROCESSORS = availableParallelism();
const WORKERS = { unit: PROCESSORS + 1, containers: PROCESSORS + 1, 'e2e*': PROCESSORS + 2 };
/** The tests of a project that have not ended by then hang. */
const LONGEST_SECONDS = 7_200;
/** Of each failure, at the end of a run. */
const FAILURE_LINES = 12;
/** Files that are named after each project. */
const SLOWEST = 12;
const FOLDERS = ['shared', 'machine', 'sandbox', 'gateway', 'sidecar', 'cli', 'worker', 'e2e', 'bench'];

/** The native compiler. dependency-cruiser needs the older one, so both are installed and have a program `tsc`. */
const TSC = 'node_modules/typescript-native/bin/tsc';
/** Several checkers repeat each other's work, and the linter runs beside it. Results are cached: only changed files and their dependents are checked again. */
const KEPT = ['--incremental', '--tsBuildInfoFile', 'node_modules/.cache/svc/types.tsbuildinfo'];

const CHECKS = [
  { name: 'types', command: 'node', args: [TSC, '--checkers', '1', ...KEPT, '-p', 'tsconfig.json'] },
  { name: 'lint', command: 'oxlint', args: ['--type-aware'] },
  { name: 'types of shared/ without Node', command: 'node', args: [TSC, '-p', 'tsconfig.shared.json'] },
  { name: 'types of the islands', command: 'node', args: [TSC, '-p', 'tsconfig.islands.json'] },
  {
    name: 'import rules',
    command: 'depcruise',
    args: ['--config', '.dependency-cruiser.cjs', ...FOLDERS.filter((folder) => existsSync(join(ROOT, folder)))],
  },
  { name: 'format', command: 'oxfmt', args: ['--check'] },
  { name: 'where secrets are revealed', command: 'node', args: ['tools/check_reveal.mjs'] },
];

const counts = { passed: 0, failed: 0, skipped: 0 };
/** What failed, said once more at the end: a line or more for each check and test. */
const failures = [];
/** Node's compile cache of the checks and of the processes that run test files: what a run loads, the next one need not compile again. */
const COMPILED = join(ROOT, 'node_modules', '.cache', 'svc', 'tests');
/** Each run adds an entry for every test file, because vitest gives it a new address. */
const MOST_COMPILED = 10_000;
const environment = {
  ...process.env,
  PATH: withSystemFolders(`${BIN}${delimiter}${process.env.PATH}`),
  NODE_COMPILE_CACHE: COMPILED,
};
const lastLines = (text) => text.trim().split('\n').slice(-FAILURE_LINES).join('\n  ');
/** Of a failure's message; the calls in other code than the project's say little. */
const firstLines = (text) =>
  text
    .trim()
    .split('\n')
    .filter((line) => !/^ +at .*(node_modules|node:|<anonymous>)/.test(line))
    .slice(0, FAILURE_LINES)
    .join('\n  ');
const say = (line) => process.stdout.write(`${line}\n`);

/** Runs a command in the project's folder. With `show` its output is printed line by line and only its end is kept. */
function run(command, args, { show = false, timeoutSeconds = 900, env = {} } = {}) {
  const began = Date.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...environment, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const chunks = [];
    let shown = '';
    // Only whole lines, because two runs may print at the same time.
    const passOn = () => {
      const said = Buffer.concat(chunks);
      const end = said.lastIndexOf('\n') + 1;
      process.stdout.write(said.subarray(0, end));
      shown = (shown + said.subarray(0, end)).slice(-10_000);
      chunks.splice(0, chunks.length, said.subarray(end));
    };
    const take = (chunk) => {
      chunks.push(chunk);
      if (show && chunk.includes('\n')) passOn();
    };
    const timer = setTimeout(() => {
      take(Buffer.from(`\nended: no result within ${timeoutSeconds} s\n`));
      child.kill('SIGKILL');
    }, timeoutSeconds * 1000);
    const finish = (code, problem) => {
      clearTimeout(timer);
      const output = shown + Buffer.concat(chunks).toString('utf8') + problem;
      resolve({ ok: code === 0, output, seconds: ((Date.now() - began) / 1000).toFixed(1) });
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => finish(1, `${command} could not be started: ${error.message}\n`));
    child.on('close', (code) => finish(code, ''));
  });
}

function report(name, result) {
  counts[result.ok ? 'passed' : 'failed'] += 1;
  say(`${result.ok ? 'ok    ' : 'FAILED'} ${name} (${result.seconds} s)`);
  if (result.ok) return;
  say(result.output.trimEnd());
  failures.push(`${name}: ${lastLines(result.output)}`);
}

/** Runs the checks, two at a time, and the unit tests beside the last of them; each reports when it ends. */
async function runChecks() {
  const checks = CHECKS.map((check) => async () => report(check.name, await run(check.command, check.args)));
  const queue = [...checks, runUnitTests];
  const lane = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next();
  };
  await Promise.all([lane(), lane()]);
}

/** The failed tests of a vitest report and the files that failed outside their tests, each with the first lines of its message. */
function failedTests(file) {
  if (!existsSync(file)) return [];
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return testResults
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, message, assertionResults }) => {
      const path = relative(ROOT, name);
      const failed = assertionResults.filter((test) => test.status === 'failed');
      if (failed.length === 0) return [`${path}: ${firstLines(message ?? '')}`];
      return failed.map((test) => `${path}: ${test.fullName}\n  ${firstLines(test.failureMessages.join('\n'))}`);
    });
}

/**
 * The counts of a vitest report. A file that failed outside its tests counts as one failure, and so does a missing or empty
 * report.
 */
function countTests(file) {
  if (!existsSync(file)) return { passed: 0, failed: 1, skipped: 0 };
  const found = JSON.parse(readFileSync(file, 'utf8'));
  const broken = found.testResults.filter(
    (suite) => suite.status === 'failed' && !suite.assertionResults.some((test) => test.status === 'failed'),
  );
  const empty = found.numTotalTests === 0 && broken.length === 0 ? 1 : 0;
  return {
    passed: found.numPassedTests,
    failed: found.numFailedTests + broken.length + empty,
    skipped: found.numPendingTests + found.numTodoTests,
  };
}

/** The files of a vitest report that took the longest, with their seconds: where time can be saved. */
function slowestFiles(file) {
  if (!existsSync(file)) return '';
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return testResults
    .map(({ name, startTime, endTime }) => ({ path: relative(ROOT, name), seconds: (endTime - startTime) / 1000 }))
    .toSorted((one, other) => other.seconds - one.seconds)
    .slice(0, SLOWEST)
    .map(({ path, seconds }) => `  ${seconds.toFixed(0).padStart(4)} s ${path}`)
    .join('\n');
}

/** Removes what a run has left. What cannot be removed is a failure, after which the run continues. */
function removeFolder(folder) {
  try {
    // A program that is still ending may write to it.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 500 });
  } catch (error) {
    report('what the tests left', { ok: false, seconds: '0', output: `${folder} cannot be removed: ${error.message}` });
  }
}

/**
 * Runs one vitest project, or all that match the pattern, in its own temporary folder, which is removed afterwards. A run that
 * crashes or has an unhandled error is a failure, even if every test passed.
 */
async function runTests(project, timeoutSeconds, ...options) {
  say(`\n${project} tests`);
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  // Some tests run programs as another user, who has to get to its own folder in it.
  chmodSync(folder, 0o711);
  const file = join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const workers = `--maxWorkers=${WORKERS[project]}`;
  const result = await run('vitest', ['run', '--project', project, workers, ...options, ...reporters], {
    show: true,
    timeoutSeconds,
    env: { TMPDIR: folder },
  });
  const found = countTests(file);
  const failed = failedTests(file);
  const passed = result.ok ? passedFiles(file) : new Set();
  const slowest = slowestFiles(file);
  removeFolder(folder);
  if (!result.ok && found.failed === 0) found.failed = 1;
  if (found.failed > 0 && failed.length === 0) failed.push(`${project} tests: ${lastLines(result.output)}`);
  failures.push(...failed);
  for (const key of Object.keys(counts)) counts[key] += found[key];
  say(`${found.failed === 0 ? 'ok    ' : 'FAILED'} ${project} tests (${result.seconds} s)`);
  if (!QUICK && slowest !== '') say(`slowest:\n${slowest}`);
  return passed;
}

const passedWhole = ({ status, assertionResults }) =>
  status === 'passed' && assertionResults.every((test) => test.status === 'passed');

/** The test files of a report whose tests all passed, by their paths in the project. */
function passedFiles(file) {
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return new Set(testResults.filter(passedWhole).map(({ name }) => relative(ROOT, name)));
}

/** Runs the unit tests; with `--quick` only the files that have not passed yet as they are now. */
async function runUnitTests() {
  const keys = keyTests(readFiles(ROOT), process.version);
  const before = new PassedTests(join(ROOT, 'node_modules', '.cache', 'svc', 'passed_tests.json'));
  const ran = new Set([...keys.keys()].filter((test) => ALL || !before.has(test, keys.get(test))));
  const left = keys.size - ran.size;
  if (left > 0)
    say(`\n${left} unit test files passed as they are now, and are not run again (npm run ok -- --all runs them)`);
  const passed = ran.size === 0 ? new Set() : await runTests('unit', LONGEST_SECONDS, ...(left > 0 ? ran : []));
  before.keep(keys, ran, passed);
}

/** Why the missing programs cannot be installed; null if they can. */
function installProblem() {
  if (!CI && process.env.SVC_TEST_INSTALL !== '1') return 'SVC_TEST_INSTALL=1 as root on Debian installs them';
  if (process.getuid?.() !== 0) return 'only root can install them';
  return succeeds('command -v apt-get') ? null : "they are installed by Debian's apt-get, which is not here";
}

/** The last error lines of apt. */
function aptProblem(output) {
  const lines = output.split('\n').filter((line) => /^(E:|Err:|ended:|dpkg: error)/.test(line));
  return lines.at(-1) ?? 'apt-get reported no error';
}

/** Installs the programs that the end-to-end tests need, if allowed; otherwise prints which ones are missing. */
async function provideSystemParts() {
  const missing = missingParts();
  if (missing.length === 0) return;
  const names = missing.map((part) => part.name).join(', ');
  const problem = installProblem();
  if (problem !== null) {
    say(`\nmissing here: ${names}; the tests that need them are skipped (${problem})`);
    return;
  }
  say(`\ninstalling ${names}`);
  const packages = [...new Set(missing.flatMap((part) => part.packages))].join(' ');
  const apt = 'apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3';
  const install = `${apt} update && DEBIAN_FRONTEND=noninteractive ${apt} install -y --no-install-recommends ${packages}`;
  const script = [install, ...missing.flatMap((part) => part.setup ?? [])].join(' && ');
  const result = await run('sh', ['-c', script], { timeoutSeconds: 1_200 });
  const still = missingParts().map((part) => part.name);
  const output = `still missing: ${still.join(', ')}; ${aptProblem(result.output)}`;
  report('system parts', { ...result, ok: still.length === 0, output });
}

function emptyFullCache() {
  const full = existsSync(COMPILED) && readdirSync(COMPILED, { recursive: true }).length > MOST_COMPILED;
  if (full) rmSync(COMPILED, { recursive: true, force: true });
}

/** Restarts under the locked Node if this is another one; then it does not return. */
function useLockedNode() {
  const locked = join(BIN, 'node');
  if (!existsSync(locked) || realpathSync(locked) === realpathSync(process.execPath)) return;
  const again = spawnSync(locked, process.argv.slice(1), { stdio: 'inherit' });
  process.exit(again.status ?? 1);
}

/**
 * Work that mostly waits runs in parallel: programs are installed during the checks, and the tests with containers run beside
 * the checks, the unit tests and the other end-to-end tests. vitest.config.ts lists the tests that run alone, at the end.
 */
async function main() {
  emptyFullCache();
  const parts = QUICK ? null : provideSystemParts();
  const containers = parts?.then(() => runTests('containers', LONGEST_SECONDS));
  await runChecks();
  await parts;
  if (!QUICK) await runTests('e2e*', LONGEST_SECONDS);
  await containers;
  if (CI && counts.skipped > 0) say('a skipped test counts as a failure under CI=true');
  for (const failure of failures) say(`\nFAILED ${failure}`);
  process.exitCode = counts.failed > 0 || (CI && counts.skipped > 0) ? 1 : 0;
  say(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
}

useLockedNode();
await main();
