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

const ANSWERS: Readonly<Record<string, object>> = {
  'GET /v1/me': ME,
  'POST /v1/secrets/check': { matches: [] },
  'POST /v1/sandbox-proxy/sessions': SESSION,
  'DELETE /v1/sandbox-proxy/sessions/ses_1?reasons=true': { reasons: [] },
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

/** The files that a command loads, below the checkout. */
async function listFiles(...args: readonly string[]): Promise<readonly string[]> {
  const env = { SVC_HOME: home.path, HOME: home.path, PATH: '/bin:/usr/bin' };
  const start = join(ROOT, 'cli', 'start.mjs');
  const options = { env, cwd: home.path };
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', LISTED, start, ...args], options);
  return stdout
    .trim()
    .split('\n')
    .map((url) => fileURLToPath(url).slice(ROOT.length));
}

const bytesOf = (files: readonly string[]): number =>
  files.reduce((bytes, file) => bytes + statSync(join(ROOT, file)).size, 0);

test('the end of a run loads at most 40 files of 140 KB, and no package', async () => {
  mkdirSync(join(home.path, 'runs'));
  const record = { session_id: 'ses_1', had_placeholders: true, expected_hosts: null, is_counted: false };
  const more = { home: home.path, control: null, json: false, quiet: false };
  const path = home.write(join('runs', '41'), JSON.stringify({ ...record, ...more }));
  const files = await listFiles(`--ended=41:${path}`);
  expect(seen).toEqual(['DELETE /v1/sandbox-proxy/sessions/ses_1?reasons=true']);
  expect(files.filter((file) => file.startsWith('node_modules/'))).toEqual([]);
  expect(files.length).toBeLessThanOrEqual(40);
  expect(bytesOf(files)).toBeLessThanOrEqual(140_000);
});

test('a plain run loads no schemas of what it does not ask for, and few packages', async () => {
  const files = await listFiles('run', '--', 'true');
  expect(seen).toEqual(Object.keys(ANSWERS).filter((call) => seen.includes(call)));
  expect(seen.at(-1)).toBe('DELETE /v1/sandbox-proxy/sessions/ses_1?reasons=true');
  expect(files.filter((file) => file.startsWith('shared/wire/')).toSorted()).toEqual([
    'shared/wire/account.ts',
    'shared/wire/ids.ts',
    'shared/wire/members.ts',
    'shared/wire/primitives.ts',
    'shared/wire/secrets.ts',
  ]);
  const packages = files.flatMap((file) => /^node_modules\/([^/]+)\//.exec(file)?.[1] ?? []);
  expect([...new Set(packages)].toSorted()).toEqual(['commander', 'smol-toml', 'zod']);
});
