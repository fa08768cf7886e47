import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCommandLine } from '../command_line.ts';
import { buildProgram } from '../program.ts';
import type { ApiCall } from '../terminal/http_client.ts';
import { runCli, testContext, TestHome, type Answer, type RunResult } from '../testing/run_cli.ts';
import { ME, SESSION } from '../testing/session_samples.ts';

const STORED = 'a stored secret of no known shape';
const SHAPED = ['ghp', 'a1B2'.repeat(9)].join('_');
const PLACEHOLDER = `sk-proj-${'a1B2'.repeat(12)}`;
const BINDING = {
  id: `bnd_${'0'.repeat(26)}`,
  host: 'api.openai.com',
  scheme: 'bearer',
  credential_ref: 'vault://user/openai',
  owner: 'personal',
  emit_mechanism: 'sentinel-swap',
  sentinel: { value: PLACEHOLDER, env: 'OPENAI_API_KEY' },
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};
const FAILURE = { error: { code: 'internal_error', message: 'the vault is damaged', request_id: 'r' } };

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

/** A control plane with one secret, and a sidecar. */
const both: Answer = ({ method, url, body }) => {
  if (url.pathname === '/v1/me') return { status: 200, body: ME };
  if (url.pathname === '/v1/secrets/check') return { status: 200, body: { matches: matchesOf(body) } };
  if (url.pathname === '/v1/host-bindings') return { status: 200, body: { items: [BINDING], next_cursor: null } };
  return method === 'POST' ? { status: 201, body: SESSION } : { status: 204 };
};

function matchesOf(body: unknown): readonly object[] {
  const values: unknown = typeof body === 'object' && body !== null && 'values' in body ? body.values : [];
  return (Array.isArray(values) ? values : []).flatMap((value: unknown, index) =>
    value === STORED ? [{ index, path: 'user/demo', owner: 'personal' }] : [],
  );
}

const checkFails: Answer = (call) =>
  call.url.pathname === '/v1/secrets/check' ? { status: 500, body: FAILURE } : both(call);
const controlAway: Answer = (call) => {
  if (call.url.port === '7420') throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  return both(call);
};

const run = (env: Record<string, string>, flags: readonly string[] = [], answer: Answer = both): Promise<RunResult> =>
  runCli(home, ['run', ...flags, '--', '/bin/sh', '-c', 'env > out'], { answer, env });
const readInherited = (): string => readFileSync(join(home.path, 'out'), 'utf8');
const sessionBody = ({ calls }: RunResult): unknown =>
  calls.find(({ url }) => url.pathname.endsWith('/sessions'))?.body;

describe('a command of svc run', () => {
  test('does not inherit a stored secret, and is told which it is', async () => {
    const done = await run({ MY_KEY: STORED, OTHER: 'an ordinary value' });
    expect(done.code).toBe(0);
    expect(readInherited()).not.toContain(STORED);
    expect(readInherited()).toContain('OTHER=an ordinary value');
    expect(done.stderr).toContain(
      'MY_KEY was taken out of the environment: it holds the stored secret vault://user/demo',
    );
    expect(done.stderr).not.toContain(STORED);
  });

  test('inherits a placeholder of another session, which is no credential', async () => {
    const done = await run({ CODEX_API_KEY: PLACEHOLDER });
    expect(readInherited()).toContain(`CODEX_API_KEY=${PLACEHOLDER}`);
    expect(done.stderr).not.toContain('CODEX_API_KEY');
  });

  test('does not inherit what has the shape of a credential, also inside a URL', async () => {
    const done = await run({ GITHUB_TOKEN: SHAPED, REMOTE: `https://user:${SHAPED}@git.example.test/x` });
    expect(readInherited()).not.toContain(SHAPED);
    expect(done.stderr).toContain('GITHUB_TOKEN was taken out of the environment');
    expect(done.stderr).toContain('svc seal github --from GITHUB_TOKEN');
    expect(done.stderr).not.toContain(SHAPED);
  });

  test('does not inherit the shape of a credential in a variable that usually holds none', async () => {
    const header = `Authorization: Bearer ${SHAPED}`;
    const done = await run({ NVM_AUTH_HEADER: header, LESSOPEN: header, NVM_DIR: '/home/me/.nvm', PAGER: 'a pager' });
    expect(readInherited()).not.toContain(SHAPED);
    expect(readInherited()).toContain('NVM_DIR=/home/me/.nvm');
    const sent = JSON.stringify(done.calls.map(({ body }) => body ?? null));
    expect(sent).not.toContain('.nvm');
    expect(sent).not.toContain('a pager');
  });

  test('gets a placeholder without a word where the session has one', async () => {
    const done = await run({ DEMO_TOKEN: STORED });
    expect(readInherited()).toContain('DEMO_TOKEN=placeholder');
    expect(done.stderr).toBe('');
  });

  test('inherits one that a person insists on, which the session records', async () => {
    const done = await run({ MY_KEY: STORED, GITHUB_TOKEN: SHAPED }, ['--keep-env', 'MY_KEY']);
    expect(readInherited()).toContain(`MY_KEY=${STORED}`);
    expect(readInherited()).not.toContain(SHAPED);
    expect(sessionBody(done)).toMatchObject({ kept_env: [{ env: 'MY_KEY', reference: 'vault://user/demo' }] });
  });

  test('does not start if a variable to keep is not set', async () => {
    const done = await run({}, ['--keep-env', 'GITHUB_TOKEN=secret-value']);
    expect(done).toMatchObject({ code: 125, calls: [] });
    expect(done.stderr).not.toContain('secret-value');
  });

  test('does not start if the check fails, because a credential might be among the values', async () => {
    const done = await run({ MY_KEY: STORED }, [], checkFails);
    expect(done.code).toBe(125);
    expect(sessionBody(done)).toBeUndefined();
  });

  test.each([
    [{ index: -1, path: 'user/demo' }, 'matches.0.index: not as expected'],
    [{ index: 7, path: 'user/demo' }, 'matches.0.index: not as expected'],
    [{ index: 0.5, path: 'user/demo' }, 'matches.0.index: not as expected'],
    [{ index: '0', path: 'user/demo' }, 'matches.0.index: not as expected'],
    [{ index: 0 }, 'matches.0.path: missing'],
    [[0, 'user/demo'], 'matches.0: not as expected'],
  ])('does not start if a match is not of a value that was asked for: %j', async (match, problem) => {
    const done = await run({ MY_KEY: STORED }, [], (call) =>
      call.url.pathname === '/v1/secrets/check' ? { status: 200, body: { matches: [match] } } : both(call),
    );
    expect([done.code, done.stderr]).toEqual([125, expect.stringContaining(problem)]);
    expect(sessionBody(done)).toBeUndefined();
  });

  test('loses what has the shape of a credential also while the control plane is away', async () => {
    const done = await run({ GITHUB_TOKEN: SHAPED }, [], controlAway);
    expect(done.code).toBe(0);
    expect(readInherited()).not.toContain(SHAPED);
  });

  test('has no ordinary variable compared with stored secrets', async () => {
    const { calls } = await run({ HOME: '/home/somebody', LC_ALL: 'C.UTF-8-long', SHORT: 'short' });
    expect(calls.map(({ url }) => url.pathname)).not.toContain('/v1/secrets/check');
  });
});

/** Runs a command whose calls are answered at a moment of the test's choice. */
const runWith = async (fetch: ApiCall) => {
  const { context, stderr } = testContext(home, { env: { MY_KEY: STORED } });
  const argv = ['run', '--', '/bin/sh', '-c', 'env > out'];
  const program = await buildProgram({ ...context, fetch }, new EventEmitter(), argv);
  return { code: await runCommandLine(program, argv), stderr };
};
const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

describe('the two questions to the control plane', () => {
  const PATHS = ['/v1/me', '/v1/secrets/check'];

  test.each(PATHS)('when %s fails, the other is not waited for and says nothing more', async (failing) => {
    const [asked, aborted]: [string[], string[]] = [[], []];
    const { code, stderr } = await runWith(async ({ pathname }, { signal }) => {
      asked.push(pathname);
      if (pathname === failing) {
        while (asked.length < PATHS.length) await nextTurn();
        return new Response(JSON.stringify(FAILURE), { status: 500 });
      }
      await once(signal, 'abort');
      aborted.push(pathname);
      throw signal.reason;
    });
    while (aborted.length === 0) await nextTurn();
    await nextTurn();
    expect([code, stderr.text]).toEqual([125, 'svc: the vault is damaged (500 internal_error)\n']);
    expect(asked.toSorted()).toEqual(PATHS);
    expect(aborted).toEqual(PATHS.filter((path) => path !== failing));
  });

  test('the command has its session only when both have answered', async () => {
    const order: string[] = [];
    const { code } = await runWith(async (url, { method, body }) => {
      // The check of the environment is answered last.
      if (url.pathname === '/v1/secrets/check') {
        while (!order.includes('/v1/me')) await nextTurn();
        for (let turn = 0; turn < 50; turn += 1) await nextTurn();
      }
      order.push(url.pathname);
      const answer = both({ method, url, authorization: null, ifMatch: null, body: JSON.parse(body ?? 'null') });
      return new Response(answer.body === undefined ? null : JSON.stringify(answer.body), { status: answer.status });
    });
    expect(code).toBe(0);
    expect(order.slice(0, 3)).toEqual([...PATHS, '/v1/sandbox-proxy/sessions']);
    expect(readInherited()).not.toContain(STORED);
  });
});

test('a whole environment is compared in calls of at most 64 values', async () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`VALUE_${n}`, `an ordinary value ${n}`]));
  const { calls } = await run({ ...many, LAST: STORED });
  const checks = calls.filter(({ url }) => url.pathname === '/v1/secrets/check');
  expect(checks).toHaveLength(2);
  expect(readInherited()).not.toContain(STORED);
});
