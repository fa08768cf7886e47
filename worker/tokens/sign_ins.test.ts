import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  hostedUser,
  type HostedUser,
  signInBrowser,
  signInProgram,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { signInsPage } from '../../shared/wire/sign_ins.ts';

let control: InProcess;
let user: HostedUser;
beforeAll(async () => {
  control = await startHosted();
  user = await hostedUser(control);
});
afterAll(() => control.stop());

const list = async (of = user) => (await parseReply(signInsPage, of.call('GET', '/v1/sessions'))).items;

test("a user's browsers and programs are listed, with the calling one marked, and can be signed out", async () => {
  const cookie = await signInBrowser(control, user.caller);
  await signInProgram(control, user.caller, 'build server');
  const items = await list();
  const shown = items.map(({ kind, client, current }) => `${kind} ${client}${current ? ' asks' : ''}`);
  expect(new Set(shown)).toEqual(new Set(['browser Browser', 'program build server', 'program laptop asks']));
  const asBrowser = () => control.send('/v1/sessions', { headers: { cookie } });
  const seen = (await parseReply(signInsPage, asBrowser())).items;
  expect(seen.filter(({ current }) => current).map(({ kind }) => kind)).toEqual(['browser']);
  for (const { id } of items.filter(({ current }) => !current)) {
    expect((await user.call('DELETE', `/v1/sessions/${id}`)).status).toBe(204);
  }
  expect((await asBrowser()).status).toBe(401);
  expect(await list()).toHaveLength(1);
});

test("nobody can end another user's sign-in", async () => {
  const colleague = await hostedUser(control, user.caller.enterpriseId);
  const [mine] = await list();
  const reply = await colleague.call('DELETE', `/v1/sessions/${mine!.id}`);
  expect(await reply.json()).toMatchObject({ error: { code: 'not_found' } });
  expect(await list(colleague)).toHaveLength(1);
  expect(await list()).toHaveLength(1);
});

test('a program that signs itself out is out at once', async () => {
  const own = await hostedUser(control);
  const [mine] = await list(own);
  expect((await own.call('DELETE', `/v1/sessions/${mine!.id}`)).status).toBe(204);
  expect((await own.call('GET', '/v1/me')).status).toBe(401);
});

test('a long list continues where a page ended, browsers and programs together, newest first', async () => {
  const own = await hostedUser(control);
  for (let number = 0; number < 3; number += 1) {
    // Two of each at the same time, and then later ones.
    await Promise.all([1, 2].map(() => signInBrowser(control, own.caller)));
    await signInProgram(control, own.caller, 'another');
    control.clock.ms += 1_000;
  }
  const all = await list(own);
  const seen: typeof all = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const next: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await parseReply(signInsPage, own.call('GET', `/v1/sessions?limit=2${next}`));
    expect(page.items.length).toBeLessThanOrEqual(2);
    seen.push(...page.items);
    cursor = page.next_cursor;
  }
  expect(seen).toHaveLength(10);
  expect(seen).toEqual(all);
  const times = seen.map(({ created_at: createdAt }) => Date.parse(createdAt));
  expect(times).toEqual(times.toSorted((a, b) => b - a));
  expect((await own.call('GET', '/v1/sessions?cursor=none')).status).toBe(400);
  expect((await own.call('DELETE', `/v1/sessions/${seen.at(-1)!.id}`)).status).toBe(204);
});
