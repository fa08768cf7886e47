import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type CompanyProxy, startCompanyProxy } from '../../e2e/support/company_proxy.ts';
import { freePort } from '../../e2e/support/free_port.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';

let home: TestHome;
let proxy: CompanyProxy;
beforeAll(async () => {
  home = new TestHome();
  proxy = await startCompanyProxy({ leadTo: () => proxy.port });
});
afterAll(async () => {
  home.remove();
  await proxy.close();
});
afterEach(() => {
  proxy.answer = null;
});

/** What `svc doctor` says of the proxy. The running sidecar uses `used`. */
async function findingsOf(env: Record<string, string>, used?: string | null): Promise<readonly object[]> {
  const health = {
    status: 'ok',
    version: '4.0.0',
    snapshot: null,
    spool: { bytes: 0, events: 0 },
    channel: { state: 'up', last_error: null },
    ...(used !== undefined && { upstream_proxy: used }),
    sessions: 0,
  };
  const answer: Answer = ({ url }) =>
    url.port === '7421' && url.pathname === '/v1/health' ? { status: 200, body: health } : { status: 404, body: {} };
  // Without programs to check, which the other findings are about.
  const { stdout } = await runCli(home, ['doctor', '--json'], { answer, env: { PATH: home.path, ...env } });
  expect(stdout).not.toContain('planted');
  const { findings }: { findings: { check: string }[] } = JSON.parse(stdout);
  return findings.filter(({ check }) => check === 'upstream proxy' || check === 'settings');
}

const SETTINGS_OK = { check: 'settings', level: 'ok' };
const withPassword = () => proxy.url.replace('//', '//worker:planted@');

test('doctor tries the proxy, and shows its address without the password', async () => {
  expect(await findingsOf({ SVC_UPSTREAM_PROXY: withPassword() })).toMatchObject([
    SETTINGS_OK,
    { level: 'ok', text: `${proxy.url} opens connections, tried with registry.modelcontextprotocol.io:443` },
  ]);
});

test('doctor says what the proxy answered, and how to mend it', async () => {
  proxy.answer = (socket) => void socket.end('HTTP/1.1 407 x\r\n\r\n');
  expect(await findingsOf({ HTTPS_PROXY: withPassword() })).toMatchObject([
    SETTINGS_OK,
    {
      level: 'problem',
      text: expect.stringContaining('does not accept the user name'),
      fix: expect.stringMatching(/%XX/),
    },
  ]);
});

test.each([403, 502])(
  'a registry that the proxy does not open (%i) is a warning: agents may reach theirs',
  async (status) => {
    proxy.answer = (socket) => void socket.end(`HTTP/1.1 ${status} x\r\n\r\n`);
    expect(await findingsOf({ HTTPS_PROXY: proxy.url })).toMatchObject([
      SETTINGS_OK,
      {
        level: 'warning',
        text: expect.stringContaining(`(${status})`),
        fix: 'have the proxy allow registry.modelcontextprotocol.io:443, to search and install MCP servers; everything else works without it',
      },
    ]);
  },
);

test('a hosted control plane that the proxy does not open is a problem', async () => {
  proxy.answer = (socket) => void socket.end('HTTP/1.1 403 x\r\n\r\n');
  const env = { HTTPS_PROXY: proxy.url, SVC_CONTROL_URL: 'https://svc.corp.example' };
  expect(await findingsOf(env)).toMatchObject([
    SETTINGS_OK,
    {
      level: 'problem',
      fix: 'have the proxy allow svc.corp.example:443, or set SVC_UPSTREAM_PROXY=off to connect without a proxy',
    },
  ]);
});

test('a proxy that cannot be reached, or does not speak HTTP, is a problem of the setting', async () => {
  const fix = 'check HTTPS_PROXY, or set SVC_UPSTREAM_PROXY=off to connect without a proxy';
  const closed = await freePort();
  expect(await findingsOf({ HTTPS_PROXY: `http://127.0.0.1:${closed}` })).toMatchObject([
    SETTINGS_OK,
    { level: 'problem', text: expect.stringContaining('ECONNREFUSED'), fix },
  ]);
  proxy.answer = (socket) => void socket.end('SSH-2.0-x\r\n\r\n');
  expect(await findingsOf({ HTTPS_PROXY: proxy.url })).toMatchObject([SETTINGS_OK, { level: 'problem', fix }]);
});

test('doctor says which hosts are exempt, and that a proxy cannot be used', async () => {
  expect(await findingsOf({ SVC_UPSTREAM_PROXY: proxy.url, NO_PROXY: '*' })).toMatchObject([
    SETTINGS_OK,
    { level: 'ok', text: expect.stringContaining('NO_PROXY exempts') },
  ]);
  expect(await findingsOf({ HTTPS_PROXY: 'socks5://worker:planted@proxy.test' })).toMatchObject([
    { check: 'settings', level: 'problem', text: expect.stringContaining('HTTPS_PROXY is not an http') },
  ]);
  expect(await findingsOf({})).toMatchObject([SETTINGS_OK]);
});

test('doctor says that the running sidecar uses another proxy', async () => {
  expect(await findingsOf({}, null)).toMatchObject([SETTINGS_OK]);
  expect(await findingsOf({ SVC_UPSTREAM_PROXY: withPassword() }, proxy.url)).toHaveLength(2);
  expect(await findingsOf({ SVC_UPSTREAM_PROXY: withPassword() }, null)).toMatchObject([
    SETTINGS_OK,
    { level: 'ok' },
    { level: 'warning', text: `the running sidecar uses none, and the settings here name ${proxy.url}` },
  ]);
});
