import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listen } from '../../machine/connection/listen.ts';
import { TestHome } from '../testing/run_cli.ts';
import { ME, SESSION } from '../testing/session_samples.ts';

/** What a run loads is read, checked and run each time. These tests hold which files that are, because no time can be held. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Prints the files that a process loads. */
const LISTED = `data:text/javascript,import { registerHooks } from 'node:module'; registerHooks({ load(url, context, next) { if (url.startsWith('file:')) console.log(url); return next(url, context); } });`;

/** Prints which parts of Node itself a process has loaded. */
const PARTS = `data:text/javascript,process.on('exit', () => console.log(process.moduleLoadList.join('\\n')));`;
/** Parts that come with an import of `node:crypto` and `node:fs/promises`. */
const UNUSED_PARTS = ['NativeModule internal/crypto/webcrypto', 'NativeModule fs/promises'];

const END = 'DELETE /v1/sandbox-proxy/sessions/ses_1?reasons=true';
/** Of both programs. */
const HEALTH = {
  status: 'ok',
  version: '4.0.0',
  time: '2026-01-01T12:00:00.000Z',
  mode: 'local',
  snapshot: null,
  spool: { bytes: 0, events: 0 },
  channel: { state: 'up', last_error: null },
  sessions: 0,
};
const ANSWERS: Readonly<Record<string, object>> = {
  'GET /v1/me': ME,
  'POST /v1/secrets/check': { matches: [] },
  'POST /v1/sandbox-proxy/sessions': SESSION,
  [END]: { reasons: [] },
  'GET /v1/health': HEALTH,
};

let home: TestHome;
let server: Server;
let seen: string[];
/** One server poses as the control plane and the sidecar. */
beforeEach(async () => {
  home = new TestHome();
  seen = [];
  server = createServer((request, response) => {
    const call = `${request.method} ${request.url}`;
    seen.push(call);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(ANSWERS[call] ?? {}));
  });
  const origin = `http://127.0.0.1:${await listen(server, 0, '127.0.0.1')}`;
  const running: object = JSON.parse(readFileSync(join(home.path, 'run.json'), 'utf8'));
  home.write('run.json', JSON.stringify({ ...running, control_url: origin, proxy_url: origin }));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  home.remove();
});

/** What a command prints, with a module that is loaded before it. */
async function runSvc(preload: string, args: readonly string[]): Promise<string> {
  const env = { SVC_HOME: home.path, HOME: home.path, PATH: '/bin:/usr/bin' };
  const start = join(ROOT, 'cli', 'start.mjs');
  const options = { env, cwd: home.path };
  return (await promisify(execFile)(process.execPath, ['--import', preload, start, ...args], options)).stdout;
}

/** The files that a command loads, below the checkout. */
async function listFiles(...args: readonly string[]): Promise<readonly string[]> {
  const lines = (await runSvc(LISTED, args)).split('\n').filter((line) => line.startsWith('file:'));
  return lines.map((url) => fileURLToPath(url).slice(ROOT.length));
}

function listPackages(files: readonly string[]): readonly string[] {
  const packages = files.flatMap((file) => /^node_modules\/([^/]+)\//.exec(file)?.[1] ?? []);
  return [...new Set(packages)].toSorted();
}

const bytesOf = (files: readonly string[]): number =>
  files.reduce((bytes, file) => bytes + statSync(join(ROOT, file)).size, 0);

test('the end of a run loads at most 40 files of 145 KB, and no package', async () => {
  mkdirSync(join(home.path, 'runs'));
  const record = { session_id: 'ses_1', had_placeholders: true, expected_hosts: null, is_counted: false };
  const more = { home: home.path, control: null, json: false, quiet: false };
  const path = home.write(join('runs', '41'), JSON.stringify({ ...record, ...more }));
  const files = await listFiles(`--ended=41:${path}`);
  expect(seen).toEqual([END]);
  expect(listPackages(files)).toEqual([]);
  expect(files.length).toBeLessThanOrEqual(40);
  expect(bytesOf(files)).toBeLessThanOrEqual(145_000);
});

test('a plain run loads commander alone of all packages, and no schemas', async () => {
  const files = await listFiles('run', '--', 'true');
  expect(Object.keys(ANSWERS)).toEqual(expect.arrayContaining(seen));
  expect(seen.slice(-2)).toEqual(['POST /v1/sandbox-proxy/sessions', END]);
  expect(listPackages(files)).toEqual(['commander']);
  expect(files.filter((file) => file.startsWith('shared/wire/'))).toEqual([]);
});

test.each([
  ['--version', []],
  ['status', ['GET /v1/health', 'GET /v1/health']],
])('svc %s loads commander alone of all packages', async (command, calls) => {
  const files = await listFiles(command);
  expect(seen).toEqual(calls);
  expect(listPackages(files)).toEqual(['commander']);
});

test.each([['run -- true'], ['status']])(
  'svc %s loads neither all of crypto nor asynchronous files, which take a tenth of the start of Node',
  async (command) => {
    const parts = (await runSvc(PARTS, command.split(' '))).split('\n');
    expect(parts).toContain('NativeModule http');
    expect(parts.filter((part) => UNUSED_PARTS.includes(part))).toEqual([]);
  },
);
