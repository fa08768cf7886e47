import { afterAll, beforeAll, expect, test } from 'vitest';
import { type InProcess, openBrowserSession, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { listHiddenCharacters } from '../../../shared/model/shown_text.ts';

/** Text that may be stored but is invisible: a zero width space, a tag, a filler, an unusual space, a selector. */
const PLANTED = 'plan\u200bted\u{e0041}\u3164\u00a0\u{1f600}\ufe0f\ufe0e';

let control: InProcess;
let cookie = '';
beforeAll(async () => {
  control = await startInProcess();
  cookie = await openBrowserSession(control);
  await Promise.all([
    control.asUser('POST', '/v1/secrets', { path: 'user/one', value: 'x'.repeat(16), description: PLANTED }),
    control.asUser('POST', '/v1/tokens', { name: PLANTED, scopes: ['secrets:read'] }),
    control.asUser('POST', '/v1/mcp-servers', {
      name: 'demo',
      mode: 'local',
      description: PLANTED,
      command: ['/opt/demo', PLANTED],
      env: { GREETING: PLANTED },
    }),
  ]);
});
afterAll(() => control.stop());

test.each(['/secrets', '/account', '/mcp-servers', '/audit', '/secrets?path=plan%E2%80%8Bted', '/no%E2%80%8Bpage'])(
  'the page %s shows no invisible characters',
  async (path) => {
    const reply = await control.inBrowser(path, { headers: { cookie } });
    expect(listHiddenCharacters(await reply.text())).toEqual([]);
  },
);

test('a planted text is on a page, with its characters escaped', async () => {
  const text = await (await control.inBrowser('/secrets', { headers: { cookie } })).text();
  expect(text).toContain('U+200B');
  expect(text).toContain('U+E0041');
  const tokens = await (await control.inBrowser('/account', { headers: { cookie } })).text();
  const servers = await (await control.inBrowser('/mcp-servers', { headers: { cookie } })).text();
  expect([tokens, servers].every((page) => page.includes('U+200B'))).toBe(true);
});
