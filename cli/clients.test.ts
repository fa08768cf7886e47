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
  test('exits with 3 and says how to start svc if nothing runs', async () => {
    rmSync(join(home.path, 'run.json'));
    const run = await runCli(home, ['api', 'GET', '/v1/me']);
    expect(run).toMatchObject({ code: 3, calls: [] });
    expect(run.stderr).toContain('is not running');
    expect(run.stderr).toContain('npm start');
  });

  test('does not send the key to the port of a dead process: another user may listen there now', async () => {
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

  test('treats a damaged run.json as if nothing ran', async () => {
    home.write('run.json', '{"control_url": 5');
    expect((await runCli(home, ['api', 'GET', '/v1/me'])).code).toBe(3);
  });

  test('exits with 3 if the connection is refused', async () => {
    const run = await runCli(home, ['api', 'GET', '/v1/me']);
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('ECONNREFUSED');
  });

  test('refuses a key that others can read and names the fix', async () => {
    chmodSync(join(home.path, 'local.key'), 0o644);
    const run = await runCli(home, ['api', 'GET', '/v1/me'], { answer: me });
    expect(run).toMatchObject({ code: 1, calls: [] });
    expect(run.stderr).toContain('chmod 600');
  });

  test('never sends the local key to another machine', async () => {
    const run = await runCli(home, ['api', 'GET', '/v1/me', '--control', 'https://control.example.com'], {
      answer: me,
    });
    expect(run).toMatchObject({ code: 1, calls: [] });
    expect(run.stderr).toContain('not signed in');
  });

  test('refuses plain http to another machine', async () => {
    const run = await runCli(home, ['api', 'GET', '/v1/me', '--control', 'http://control.example.com'], { answer: me });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('--control');
  });

  test('names every invalid setting', async () => {
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

  test('refuses a body that is not JSON without repeating it', async () => {
    const run = await runCli(home, ['api', 'POST', '/v1/x', '--data', 'hunter2hunter2'], { answer: me });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).not.toContain('hunter2');
  });

  test.each(['v1/me', '//evil.example/x', 'https://evil.example/x'])('refuses the path %j', async (path) => {
    expect(await runCli(home, ['api', 'GET', path], { answer: me })).toMatchObject({ code: 2, calls: [] });
  });

  test('never sends the key to a host named in the path', async () => {
    for (const path of ['/\\evil.example/x', '/v1/..//evil.example', '/@evil.example']) {
      const run = await runCli(home, ['api', 'GET', path], { answer: me });
      expect(run.calls.filter((call) => call.url.host !== '127.0.0.1:7420')).toEqual([]);
    }
  });
});

test('suggests the nearest command for an unknown one', async () => {
  const run = await runCli(home, ['secrets', 'list']);
  expect(run.code).toBe(2);
  expect(run.stderr).toContain('Did you mean secret?');
});

test('--help lists the exit codes', async () => {
  const run = await runCli(home, ['--help']);
  expect(run.code).toBe(0);
  expect(run.stdout).toContain('Exit codes:');
});
