import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, CONTROL_URL, runCli, TestHome } from '../testing/run_cli.ts';

const NOW = '2026-01-01T12:00:00.000Z';
const LINK = { url: `${CONTROL_URL}/auth/link/code`, expires_at: '2026-01-01T12:10:00.000Z' };

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

function controlPlane(mode: 'local' | 'hosted'): Answer {
  const health = { status: 'ok', version: '4.0.0', time: NOW, mode };
  return (call) => (call.url.pathname === '/v1/health' ? { status: 200, body: health } : { status: 201, body: LINK });
}

test('for a local control plane prints only a one-time sign-in link on stdout', async () => {
  const found = await runCli(home, ['console'], { answer: controlPlane('local') });
  expect(found.code).toBe(0);
  expect(found.stdout).toBe(`${LINK.url}\n`);
  expect(found.stderr).toBe(
    `The link works once, until ${LINK.expires_at}. If the browser does not resolve the name: docs/sign-in.md.\n`,
  );
  expect(found.calls.map(({ method, url }) => `${method} ${url.pathname}`)).toContain('POST /v1/sign-in-links');
});

test('for a hosted control plane prints its address', async () => {
  const found = await runCli(home, ['console', '--json'], { answer: controlPlane('hosted') });
  expect(JSON.parse(found.stdout)).toEqual({ url: `${CONTROL_URL}/`, expires_at: null });
  expect(found.calls.map(({ method }) => method)).toEqual(['GET']);
});

test('without a control plane says how to start one', async () => {
  const found = await runCli(home, ['console']);
  expect(found.code).toBe(3);
  expect(found.stderr).toContain('npm start');
});
