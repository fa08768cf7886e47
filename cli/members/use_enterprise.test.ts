import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

const ORIGIN = 'https://control.example.test';
const ID = '01m7yjbz4dz98vffmftfxp52e5';
const OTHER = '01m7yjbz4dz98vffmftfxp52e6';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
  home.write('run.json', '{}');
  const tokens = { access_token: 'old-access', access_expires_at_ms: 4_000_000_000_000, refresh_token: 'svc_rt_old' };
  home.write('sign_in.json', JSON.stringify({ version: 1, control_url: ORIGIN, ...tokens }));
});
afterEach(() => home.remove());

const item = { role: 'member', suspended_at: null };
const items = [
  { ...item, id: `ent_${ID}`, name: 'Acme', slug: 'acme', user_id: `usr_${ID}`, current: false },
  { ...item, id: `ent_${OTHER}`, name: 'Home', slug: 'home', user_id: `usr_${OTHER}`, current: true },
];
const tokens = { access_token: 'new-access', token_type: 'Bearer', expires_in: 600, refresh_token: 'svc_rt_new' };
const answer: Answer = ({ url }) => {
  if (url.pathname === '/v1/enterprises') return { status: 200, body: { items } };
  return url.pathname === '/auth/revoke' ? { status: 204 } : { status: 200, body: tokens };
};
const use = (name: string, by = answer) => runCli(home, ['enterprise', 'use', name], { answer: by });
const stored = (): unknown => JSON.parse(readFileSync(join(home.path, 'sign_in.json'), 'utf8'));

test('takes the tokens of the other user, and then ends the sign-in of the first', async () => {
  const run = await use('acme');
  expect(run.stdout).toBe('in Acme as member\n');
  expect(run.calls.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
    'GET /v1/enterprises',
    `POST /v1/enterprises/ent_${ID}/sign-in`,
    'POST /auth/revoke',
  ]);
  expect(run.calls.at(-1)?.body).toEqual({ refresh_token: 'svc_rt_old' });
  expect(stored()).toMatchObject({ control_url: ORIGIN, access_token: 'new-access', refresh_token: 'svc_rt_new' });
});

test('changes nothing for an unknown enterprise, for the current one, or if the other one refuses', async () => {
  expect(await use('nobody')).toMatchObject({ code: 1 });
  expect((await use('home')).stdout).toBe('already in Home\n');
  const error = { code: 'sso_required', message: 'no', request_id: `req_${ID}` };
  const refusing: Answer = (call) => (call.method === 'POST' ? { status: 403, body: { error } } : answer(call));
  const refused = await use('acme', refusing);
  expect([refused.code === 0, refused.calls.length]).toEqual([false, 2]);
  expect(stored()).toMatchObject({ refresh_token: 'svc_rt_old' });
});
