import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOCAL_KEY, runCli, TestHome, type Answer } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const VALUE = 'planted-secret-0123456789';
const record = {
  id: 'sec_01m7yjbz4dz98vffmftfxp52e5',
  path: 'user/demo',
  ref: 'vault://user/demo',
  owner: 'personal',
  description: null,
  version: 1,
  created_at: '2026-01-01T11:59:00.000Z',
  updated_at: '2026-01-01T11:59:00.000Z',
};
const answerStored: Answer = () => ({ status: 201, body: record });

describe('svc secret set', () => {
  test('sends the value from stdin as the local owner and prints only the reference', async () => {
    const run = await runCli(home, ['secret', 'set', 'user/demo', '--stdin'], { stdin: VALUE, answer: answerStored });
    expect(run).toMatchObject({ code: 0, stdout: 'vault://user/demo\n', stderr: '' });
    expect(run.calls).toMatchObject([{ method: 'POST', authorization: `Bearer ${LOCAL_KEY}` }]);
    expect(run.calls[0]?.body).toEqual({ path: 'user/demo', value: VALUE, owner: 'personal' });
  });

  test.each([
    [`${VALUE}\n`, VALUE],
    [`${VALUE}\r\n`, VALUE],
    [`${VALUE}\n\n`, `${VALUE}\n`],
    [` ${VALUE} `, ` ${VALUE} `],
  ])('drops only one trailing line break: %j', async (stdin, value) => {
    const run = await runCli(home, ['secret', 'set', 'user/demo', '--stdin'], { stdin, answer: answerStored });
    expect(run.calls[0]?.body).toMatchObject({ value });
  });

  test('keeps the line break with the flag', async () => {
    const argv = ['secret', 'set', 'user/demo', '--stdin', '--keep-newline'];
    const run = await runCli(home, argv, { stdin: `${VALUE}\n`, answer: answerStored });
    expect(run.calls[0]?.body).toMatchObject({ value: `${VALUE}\n` });
  });

  test('prompts without echo at a terminal, also with --stdin', async () => {
    const run = await runCli(home, ['secret', 'set', 'user/demo', '--stdin'], {
      stdin: `${VALUE}\n`,
      terminal: true,
      answer: answerStored,
    });
    expect(run.calls[0]?.body).toMatchObject({ value: VALUE });
    expect(run.stderr).toBe('Secret (not shown): \n');
    expect(run.stdout).not.toContain(VALUE);
  });

  test('reads a file', async () => {
    const file = home.write('token.txt', `${VALUE}\n`);
    const run = await runCli(home, ['secret', 'set', 'user/demo', '--file', file], { answer: answerStored });
    expect(run.calls[0]?.body).toMatchObject({ value: VALUE });
  });

  test.each([
    [['secret', 'set', 'user/demo', VALUE]],
    [['secret', 'set', 'user/demo', '--value', VALUE]],
    [['secret', 'set', 'user/demo', `--value=${VALUE}`]],
    [['secret', 'set', 'user/demo', '--stdin', VALUE]],
  ])('refuses a value on the command line without repeating it: %j', async (argv) => {
    const run = await runCli(home, argv, { stdin: 'x', answer: answerStored });
    expect(run).toMatchObject({ code: 2, calls: [], stdout: '' });
    expect(run.stderr).toContain('cannot be given on the command line');
    expect(run.stderr).toContain('--stdin');
    expect(run.stderr).not.toContain(VALUE);
  });

  test.each([
    [['secret', 'set', 'user/demo', `--token=${VALUE}`]],
    [['secret', 'rm', 'user/demo', VALUE]],
    [['status', VALUE]],
  ])('refuses a mistyped command line without repeating its values: %j', async (argv) => {
    const run = await runCli(home, argv, { answer: answerStored });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).not.toContain(VALUE);
  });

  test.each([
    ['an empty value', ['--stdin'], '', 'the secret is empty'],
    ['a lone line break', ['--stdin'], '\n', 'the secret is empty'],
    ['no source without a terminal', [], VALUE, 'say where the secret comes from'],
    ['two sources', ['--stdin', '--file', 'x'], VALUE, 'choose one'],
    ['a value that is too large', ['--stdin'], 'x'.repeat(65_539), 'larger than 65536 bytes'],
  ])('refuses %s', async (_name, flags, stdin, message) => {
    const run = await runCli(home, ['secret', 'set', 'user/demo', ...flags], { stdin, answer: answerStored });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain(message);
  });

  test('refuses a missing file and an invalid path', async () => {
    expect((await runCli(home, ['secret', 'set', 'user/demo', '--file', 'gone'])).stderr).toBe(
      'svc: the file of --file cannot be read: it does not exist\n',
    );
    const run = await runCli(home, ['secret', 'set', 'User//demo', '--stdin'], { stdin: VALUE });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('vault path');
  });

  test('warns about a short secret and about leading or trailing white space', async () => {
    const run = await runCli(home, ['secret', 'set', 'user/demo', '--stdin'], { stdin: ' abc', answer: answerStored });
    expect(run.stderr).toContain('fewer than 8 bytes');
    expect(run.stderr).toContain('white space');
  });
});

const answer: Answer = () => ({ status: 200, body: { items: [record], next_cursor: null } });

describe('svc secret list', () => {
  test('is tab-separated without headings for a program', async () => {
    const run = await runCli(home, ['secret', 'list'], { answer });
    expect(run.stdout).toBe('vault://user/demo\tpersonal\t1\t1m ago\t\n');
  });

  test('is a table with headings on a terminal, and plain with NO_COLOR', async () => {
    const run = await runCli(home, ['secret', 'list'], { answer, terminal: true, env: { NO_COLOR: '1' } });
    expect(run.stdout.split('\n')[0]).toMatch(/^REFERENCE +OWNER +VERSION +STORED +DESCRIPTION$/);
  });

  test('prints JSON with --json before or after the command', async () => {
    for (const argv of [
      ['--json', 'secret', 'list'],
      ['secret', 'list', '--json'],
    ]) {
      expect(JSON.parse((await runCli(home, argv, { answer })).stdout)).toEqual({ items: [record] });
    }
  });

  test('follows the cursor to the last page', async () => {
    const run = await runCli(home, ['secret', 'list'], {
      answer: ({ url }) => {
        const first = url.searchParams.get('cursor') === null;
        return { status: 200, body: { items: [record], next_cursor: first ? 'next' : null } };
      },
    });
    expect(run.stdout.trimEnd().split('\n')).toHaveLength(2);
  });

  test('escapes control characters from the control plane', async () => {
    const evil = { ...record, description: '\u001b[2Jgone\u202e' };
    const run = await runCli(home, ['secret', 'list'], {
      answer: () => ({ status: 200, body: { items: [evil], next_cursor: null } }),
    });
    expect(run.stdout).toContain('\\x1b[2Jgone\\u202e');
  });
});

test('prints the code and fields of a refusal and exits with 1', async () => {
  const error = {
    code: 'secret_in_use',
    message: 'a binding uses it',
    details: { fields: [{ field: 'path', message: 'is bound' }] },
    request_id: 'req_1',
  };
  const run = await runCli(home, ['secret', 'rm', 'user/demo'], { answer: () => ({ status: 409, body: { error } }) });
  expect(run).toMatchObject({ code: 1, stderr: 'svc: a binding uses it (409 secret_in_use)\n     path: is bound\n' });
});

test('says once what is wrong with the only invalid field', async () => {
  const fields = [{ field: 'path', message: 'is too long' }];
  const error = { code: 'invalid_input', message: 'path is too long', details: { fields } };
  const run = await runCli(home, ['secret', 'rm', 'user/demo'], { answer: () => ({ status: 400, body: { error } }) });
  expect(run.stderr).toBe('svc: path is too long (400 invalid_input)\n');
});

test('names the command that lists things, not the call', async () => {
  const error = { code: 'not_found', message: 'there is no personal secret "a": list them with GET /v1/secrets' };
  const run = await runCli(home, ['secret', 'rm', 'a'], { answer: () => ({ status: 404, body: { error } }) });
  expect(run.stderr).toBe('svc: there is no personal secret "a": `svc secret list` lists them (404 not_found)\n');
});

test('treats a reply in an unknown format as an error', async () => {
  const run = await runCli(home, ['secret', 'list'], { answer: () => ({ status: 200, body: { items: [{ id: 1 }] } }) });
  expect(run).toMatchObject({ code: 1, stdout: '' });
  expect(run.stderr).toContain('in a format that this svc does not know');
});
