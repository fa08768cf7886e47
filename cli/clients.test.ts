import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, TestHome } from './testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const me = () => ({ status: 200, body: { id: 'usr_1' } });

describe('reaching the control plane', () => {
  test('nothing runs: exit code 3 and how to start it', async () => {
    rmSync(join(home.path, 'run.json'));
    const run = await runCli(home, ['api', 'GET', '/v1/me']);
    expect(run).toMatchObject({ code: 3, calls: [] });
    expect(run.stderr).toContain('is not running');
    expect(run.stderr).toContain('npm start');
  });

  test('the key is not sent to a port whose process is gone: another user may listen there now', async () => {
    const gone = 2 ** 22 + 1;
    const run = {
      proxy_url: 'http://127.0.0.1:1',
      control_url: 'http://127.0.0.1:2',
      version: '4.0.0',
      started_at: '',
    };
    home.write('run.json', JSON.stringify({ ...run, control_pid: gone, sidecar_pid: gone }));
    expect(await runCli(home, ['api', 'GET', '/v1/me'], { answer: me })).toMatchObject({ code: 3, calls: [] });
  });

  test('a damaged run.json counts as nothing running', async () => {
    home.write('run.json', '{"control_url": 5');
    expect((await runCli(home, ['api', 'GET', '/v1/me'])).code).toBe(3);
  });

  test('a refused connection is exit code 3', async () => {
    const run = await runCli(home, ['api', 'GET', '/v1/me']);
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('ECONNREFUSED');
  });

  test('a key that others can read is refused, with the fix', async () => {
    chmodSync(join(home.path, 'local.key'), 0o644);
    const run = await runCli(home, ['api', 'GET', '/v1/me'], { answer: me });
    expect(run).toMatchObject({ code: 1, calls: [] });
    expect(run.stderr).toContain('chmod 600');
  });

  test('the local key never goes to another machine', async () => {
    const run = await runCli(home, ['api', 'GET', '/v1/me', '--control', 'https://control.example.com'], {
      answer: me,
    });
    expect(run).toMatchObject({ code: 1, calls: [] });
    expect(run.stderr).toContain('not signed in');
  });

  test('plain http to another machine is refused by name', async () => {
    const run = await runCli(home, ['api', 'GET', '/v1/me', '--control', 'http://control.example.com'], { answer: me });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('--control');
  });

  test('bad settings are all named', async () => {
    const env = { SVC_MAX_HEADERS: 'many', SVC_CONTROL_URL: 'x' };
    const run = await runCli(home, ['secret', 'list'], { env });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('SVC_MAX_HEADERS');
    expect(run.stderr).toContain('SVC_CONTROL_URL');
  });
});

describe('svc api', () => {
  test('prints the body of an error on stdout, and exits with 1', async () => {
    const body = '{"error":{"code":"not_found"}}';
    const run = await runCli(home, ['api', 'get', '/v1/x'], { answer: () => ({ status: 404, body }) });
    expect(run).toMatchObject({ code: 1, stdout: `${body}\n` });
    expect(run.calls[0]?.method).toBe('GET');
  });

  test('sends JSON from the argument, a file and stdin', async () => {
    const file = home.write('body.json', '{"a":2}');
    const bodies = [
      await runCli(home, ['api', 'POST', '/v1/x', '--data', '{"a":1}'], { answer: me }),
      await runCli(home, ['api', 'POST', '/v1/x', '--data', `@${file}`], { answer: me }),
      await runCli(home, ['api', 'POST', '/v1/x', '--data', '@-'], { answer: me, stdin: '{"a":3}' }),
    ].map((run) => run.calls[0]?.body);
    expect(bodies).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
  });

  test('a body that is not JSON is refused without repeating it', async () => {
    const run = await runCli(home, ['api', 'POST', '/v1/x', '--data', 'hunter2hunter2'], { answer: me });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).not.toContain('hunter2');
  });

  test.each(['v1/me', '//evil.example/x', 'https://evil.example/x'])('refuses the path %j', async (path) => {
    expect(await runCli(home, ['api', 'GET', path], { answer: me })).toMatchObject({ code: 2, calls: [] });
  });

  test('no path leads the key away from the control plane', async () => {
    for (const path of ['/\\evil.example/x', '/v1/..//evil.example', '/@evil.example']) {
      const run = await runCli(home, ['api', 'GET', path], { answer: me });
      expect(run.calls.filter((call) => call.url.host !== '127.0.0.1:7420')).toEqual([]);
    }
  });
});

test('an unknown command names the nearest one', async () => {
  const run = await runCli(home, ['secrets', 'list']);
  expect(run.code).toBe(2);
  expect(run.stderr).toContain('Did you mean secret?');
});

test('--help lists the exit codes', async () => {
  const run = await runCli(home, ['--help']);
  expect(run.code).toBe(0);
  expect(run.stdout).toContain('Exit codes:');
});
