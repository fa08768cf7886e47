import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { ServerSessions } from '../gateway_ports.ts';
import { createSealedSandbox, findServerSandbox, type SandboxedRun } from './sealed_sandbox.ts';

const BUBBLEWRAP = { program: '/usr/bin/bwrap', machine: 'x64' } as const;

let home: string;
let bundle: string;
/** What happened, in order. */
let steps: string[];
let sessions: Pick<ServerSessions, 'open' | 'end'>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-sealed-'));
  bundle = join(home, 'bundle.pem');
  writeFileSync(bundle, 'the roots');
  steps = [];
  sessions = {
    open: ({ name }, place) => {
      const folder = place.kind === 'sandbox' ? place.folder : '';
      steps.push(`open ${name} ${existsSync(join(home, 'sandboxes', folder)) ? 'with a folder' : 'without one'}`);
      const sentinels = [
        { env: 'API_TOKEN', value: 'placeholder-of-the-api' },
        { env: 'OWN', value: 'placeholder-of-own' },
      ];
      const proxyUrl = 'http://ses_1:token-1@127.0.0.1:40001';
      return Promise.resolve(ok({ sessionId: 'ses_1', proxyUrl, caBundlePath: bundle, sentinels }));
    },
    end: (id) => (steps.push(`end ${id}`), Promise.resolve()),
  };
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const run = (more: Partial<SandboxedRun> = {}): SandboxedRun => ({
  server: localServer({ name: 'box' }),
  command: ['/usr/bin/server', '--stdio'],
  packageFolder: null,
  needs: [],
  env: { OWN: 'of its configuration', HTTPS_PROXY: 'http://elsewhere', SVC_HOME: '/x', PATH: '/evil', NAME: 'a' },
  gateway: { LANG: 'C.UTF-8', SVC_TOKEN: 'planted', HTTPS_PROXY: 'http://planted', PATH: '/home/ada/bin' },
  runId: 'gw.1',
  number: 1,
  home,
  ...more,
});
const folders = (): readonly string[] => readdirSync(join(home, 'sandboxes'));

describe('a server in a sandbox', () => {
  test('has a session of its own, and a folder that is removed at its end', async () => {
    const made = await createSealedSandbox(BUBBLEWRAP, sessions, run());
    expect([made.ok, steps, folders().length]).toEqual([true, ['open box with a folder'], 1]);
    const [folder = ''] = folders();
    expect(readFileSync(join(home, 'sandboxes', folder, 'ca.pem'), 'utf8')).toBe('the roots');
    if (made.ok) await made.value.end();
    expect([steps.at(-1), folders()]).toEqual(['end ses_1', []]);
  });

  test('has no folder of another server of the same gateway', async () => {
    await createSealedSandbox(BUBBLEWRAP, sessions, run({ number: 1 }));
    await createSealedSandbox(BUBBLEWRAP, sessions, run({ number: 2 }));
    expect(new Set(folders()).size).toBe(2);
    const again = await createSealedSandbox(BUBBLEWRAP, sessions, run({ number: 2 }));
    expect([again, folders().length]).toEqual([{ ok: false, error: expect.stringContaining('EEXIST') }, 2]);
  });

  test('gets its own variables and the placeholders, reaches the proxy at its own loopback, and has nothing of the gateway', async () => {
    const made = await createSealedSandbox(BUBBLEWRAP, sessions, run());
    const env = made.ok ? made.value.env : {};
    expect(env).toMatchObject({
      HTTPS_PROXY: 'http://ses_1:token-1@127.0.0.1:7421',
      SSL_CERT_FILE: '/run/svc/session/ca.pem',
      API_TOKEN: 'placeholder-of-the-api',
      OWN: 'of its configuration',
      NAME: 'a',
      HOME: '/home/mcp',
      LANG: 'C.UTF-8',
      MCP_GATEWAY_RUN: 'gw.1',
    });
    expect(env['PATH']).toMatch(/^\/opt\/svc\/node:/);
    expect(Object.keys(env).filter((name) => name.startsWith('SVC_'))).toEqual([]);
    expect(JSON.stringify(env)).not.toContain('planted');
  });

  test('leaves nothing if its session is refused, or its files cannot be written', async () => {
    const refusing = { ...sessions, open: () => Promise.resolve(err('no consent')) };
    expect(await createSealedSandbox(BUBBLEWRAP, refusing, run())).toEqual({ ok: false, error: 'no consent' });
    expect(folders()).toEqual([]);
    rmSync(bundle);
    expect(await createSealedSandbox(BUBBLEWRAP, sessions, run())).toMatchObject({ ok: false });
    expect([steps.at(-1), folders()]).toEqual(['end ses_1', []]);
  });
});

test.each([
  [['npx', '-y', 'other@1.0.0', '--flag'], 'npx fetches its package at the start, for which a sandbox has no room'],
  [['bunx', 'other@1.0.0'], 'bunx fetches its package at the start, for which a sandbox has no room'],
  [['deno', 'run', 'npm:other'], 'deno fetches its package at the start, for which a sandbox has no room'],
  [['/opt/acme/bin/server'], 'a sandbox does not have "/opt/acme/bin/server"'],
  [['/etc/alternatives/../passwd'], 'a sandbox does not have "/etc/alternatives/../passwd"'],
  [['/home/ada/server'], 'a sandbox does not have "/home/ada/server"'],
  [['./usr/bin/env'], 'a sandbox does not have "./usr/bin/env"'],
  [['no-such-program-here'], 'a sandbox does not have "no-such-program-here"'],
])('the command %j without an installed package has no sandbox', (command, why) => {
  expect(findServerSandbox(command, false, { PATH: '' })).toEqual({ ok: false, error: why });
});
