import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = '01m7yjbz4dz98vffmftfxp52e5';
const TIME = '2026-01-01T12:00:00.000Z';
const token = {
  id: `sct_${ID}`,
  name: 'Okta',
  created_by: `usr_${ID}`,
  created_at: TIME,
  expires_at: '2999-01-01T12:00:00.000Z',
  last_used_at: null,
  revoked_at: null,
};
const created = { ...token, token: 'svc_scim_of-a-test', base_url: 'https://control.test/scim/v2' };
const answer: Answer = ({ method }) => {
  if (method === 'GET')
    return { status: 200, body: { items: [token, { ...token, revoked_at: TIME }], next_cursor: null } };
  return method === 'DELETE' ? { status: 204 } : { status: 201, body: created };
};
const run = (...args: string[]) => runCli(home, args, { answer });

test('svc scim create prints the token alone on stdout, and where the directory calls', async () => {
  const { calls, stdout, stderr } = await run('scim', 'create', 'Okta', '--days', '30');
  expect(calls.map(({ method, url, body }) => [method, url.pathname, body])).toEqual([
    ['POST', '/v1/scim-tokens', { name: 'Okta', expires_in_days: 30 }],
  ]);
  expect(stdout).toBe('svc_scim_of-a-test\n');
  expect(stderr).toContain('The directory calls https://control.test/scim/v2.');
  expect(JSON.parse((await run('scim', 'create', 'Okta', '--json')).stdout)).toEqual(created);
});

test('svc scim list shows states, and svc scim revoke revokes', async () => {
  const { stdout } = await run('scim', 'list');
  expect(stdout).toMatch(/sct_\w+\tOkta\tuntil 2999-01-01\tnever\n/);
  expect(stdout).toContain('revoked');
  const revoked = await run('scim', 'revoke', token.id);
  expect(revoked.calls.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
    `DELETE /v1/scim-tokens/${token.id}`,
  ]);
});

test('a wrong number of days is refused before any call', async () => {
  const { code, calls, stderr } = await run('scim', 'create', 'Okta', '--days', 'many');
  expect([code, calls, stderr]).toEqual([2, [], expect.stringContaining('--days is "many": use a number of days')]);
});
