import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, type RunOptions, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const PREVIEW = {
  kind: 'secret',
  name: 'user/demo',
  owner: 'personal',
  allowed: true,
  effects: [{ code: 'unused', text: 'Nothing refers to it.', uses: [], names: [] }],
  last_used_at: null,
};
const IN_USE = {
  ...PREVIEW,
  allowed: false,
  effects: [
    {
      code: 'requests_refused',
      text: 'Without it, their requests are refused with status 503:',
      uses: [{ kind: 'binding', id: 'bnd_1', name: 'api.example.test\u001b[2J' }],
      names: [],
    },
  ],
};

const answer =
  (preview: object): Answer =>
  ({ method }) =>
    method === 'GET' ? { status: 200, body: preview } : { status: 204 };

const remove = (preview: object, options: RunOptions, ...flags: string[]) =>
  runCli(home, ['secret', 'rm', 'user/demo', ...flags], { answer: answer(preview), ...options });

const methods = ({ calls }: { readonly calls: readonly { readonly method: string }[] }) =>
  calls.map(({ method }) => method);

describe('svc secret rm', () => {
  test('shows at a terminal what the deletion does, and deletes after a yes', async () => {
    const run = await remove(PREVIEW, { terminal: true, typed: ['y'] });
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('- Nothing refers to it.');
    expect(methods(run)).toEqual(['GET', 'DELETE']);
    expect(run.calls[0]?.url.pathname).toBe('/v1/secrets/user/demo/deletion');
  });

  test('deletes nothing after any other answer', async () => {
    const run = await remove(PREVIEW, { terminal: true, typed: [''] });
    expect([run.code, methods(run)]).toEqual([1, ['GET']]);
    expect(run.stderr).toContain('nothing was deleted');
  });

  test('names what uses the secret and does not ask', async () => {
    const run = await remove(IN_USE, { terminal: true, typed: ['y'] });
    expect([run.code, methods(run)]).toEqual([1, ['GET']]);
    expect(run.stderr).toMatch(/requests are refused with status 503:\n +api\.example\.test.* {2}binding/);
    expect(run.stderr).not.toContain('\u001b[2J');
  });

  test('asks nothing without a terminal, and with --yes', async () => {
    expect(methods(await remove(PREVIEW, {}))).toEqual(['DELETE']);
    expect(methods(await remove(PREVIEW, { terminal: true }, '--yes'))).toEqual(['DELETE']);
  });

  test('--dry-run deletes nothing, also together with --yes', async () => {
    const run = await remove(IN_USE, {}, '--dry-run', '--yes', '--json');
    expect([run.code, methods(run)]).toEqual([0, ['GET']]);
    expect(JSON.parse(run.stdout)).toMatchObject({ allowed: false });
  });
});
