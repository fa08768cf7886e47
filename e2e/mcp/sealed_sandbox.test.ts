import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { foundIn, plantSecret, searchProcesses } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import { SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { startBoxRegistry } from './box_registry.ts';
import { earlierClient, type TestClient } from './gateway/test_clients.ts';
import type { TestRegistry } from './npm_registry.ts';

// On a machine without a container engine, a new server runs in a sandbox of bubblewrap with what it would have in a container.

const API = 'api.example.test';
const BOUND = 'bound.example.test';
const SECRET = plantSecret();
const OWN = plantSecret();
const PLACEHOLDER = 'box-placeholder-0123456789abcdef';
const ATTACK = readFileSync(join(import.meta.dirname, '..', 'containers', 'programs', 'attack.py'), 'utf8');
const bubblewrap = findBubblewrap(machineFacts('/usr/bin'));
const canTry = bubblewrap.ok && probeBubblewrap(bubblewrap.value).ok;
const status = z.object({
  items: z
    .array(
      z.looseObject({
        isolation: z.string(),
        allowed_hosts: z.array(z.string()).nullable(),
        refused_hosts: z.array(z.string()),
      }),
    )
    .length(1),
});

describe.skipIf(!canTry)('a new server without an engine', () => {
  let svc: Svc;
  let upstream: TlsUpstream;
  let registry: TestRegistry;
  let person: string;
  let client: TestClient | null = null;

  const environment = () => ({
    HOME: person,
    DOCKER_HOST: `unix://${person}/none.sock`,
    npm_config_registry: registry.url,
    npm_config_fetch_retries: '0',
    SVC_HOME: svc.home,
  });
  async function done(...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
    const finished = await svc.cli(args, { env: environment() });
    expect({ code: finished.code, stderr: finished.code === 0 ? '' : finished.stderr }).toEqual({
      code: 0,
      stderr: '',
    });
    return finished;
  }
  async function call(tool: string, args: Record<string, unknown>): Promise<string> {
    const variables = Object.entries(environment()).map(([name, value]) => `${name}=${value}`);
    client ??= await earlierClient({ kind: 'stdio', command: 'env', args: [...variables, SVC, 'mcp', 'gateway'] });
    const { content } = await client.callTool(tool, args);
    return content[0]?.text ?? '';
  }
  const inBox = (script: string, ...args: string[]): Promise<string> => call('box__run', { script, args });
  const statusOf = async () => {
    const shown = await done('mcp', 'status', 'box', '--json');
    return status.parse(JSON.parse(shown.stdout)).items[0];
  };

  beforeAll(async () => {
    const ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([API, BOUND]));
    person = mkdtempSync(join(tmpdir(), 'svc-e2e-person-'));
    writeFileSync(join(person, 'notes.txt'), 'notes of the person');
    registry = await startBoxRegistry();
    const resolve = [API, BOUND].map((host) => `${host}:127.0.0.1:${upstream.port}`);
    svc = await Svc.up({
      upstreamCaFiles: [ca.file],
      resolve,
      env: { DOCKER_HOST: `unix://${person}/none.sock` },
    });
    await svc.secret('user/api', SECRET);
    const bound = { scheme: 'bearer', credential_ref: 'vault://user/api' };
    const sentinel = { value: PLACEHOLDER, env: 'BOX_TOKEN' };
    await svc.binding({ ...bound, host: API, emit_mechanism: 'sentinel-swap', sentinel });
    await svc.binding({ ...bound, host: BOUND });
  });
  afterAll(async () => {
    await client?.close().catch(() => undefined);
    await Promise.all([svc.stop(), upstream.close(), registry.stop()]);
    rmSync(person, { recursive: true, force: true });
  });

  it('runs in a sandbox that reaches only the hosts that were typed, and its consent says so', async () => {
    const box = ['npx', '-y', '@acme/box@1.0.0'];
    const added = await done('mcp', 'add', 'box', '--allow', API, '--env', 'TOKEN', '--', ...box);
    expect(added.stderr).toContain('box runs in a sandbox of bubblewrap, not in a container: ');
    await svc.cli(['mcp', 'credential', 'set', 'box', 'TOKEN', '--stdin'], { input: OWN });
    expect(await statusOf()).toMatchObject({ isolation: 'container', allowed_hosts: [API], refused_hosts: [] });
    await done('mcp', 'consent', 'box', '--withdraw');
    const asked = await svc.cli(['mcp', 'consent', 'box'], { env: environment() });
    expect(asked.stdout).toContain('isolation  in a sandbox of bubblewrap; it reaches no host until you allow one');
    await done('mcp', 'consent', 'box', '--yes');
    await done('mcp', 'allow', 'box', API);
  });

  it('holds a placeholder, and its API gets the credential', async () => {
    upstream.reset();
    expect(await call('box__fetch', { url: `https://${API}/issues` })).toBe('200 ok');
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    const script = 'curl -sS -H "Authorization: Bearer $BOX_TOKEN" https://$1/by-curl';
    expect(await inBox(script, API)).toBe('ok');
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  });

  it('reaches a bound host only once a person has allowed it', async () => {
    upstream.reset();
    expect(await inBox('curl -sS https://$1/', BOUND)).toContain('403');
    expect(upstream.requests).toEqual([]);
    expect(await statusOf()).toMatchObject({ allowed_hosts: [API], refused_hosts: [BOUND] });
    await done('mcp', 'allow', 'box', BOUND);
    await waitFor('the server to start with the new list', async () => {
      const said = await inBox('curl -sS https://$1/allowed', BOUND).catch(() => '');
      return said === 'ok';
    });
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    await done('mcp', 'allow', 'box', BOUND, '--remove');
  });

  it('sees no file of the person and of svc, no other process and no secret but the value of its own reference', async () => {
    const script = `
      env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline
      cat $(find / -xdev -type f -size -256k -not -path "/usr/*" -not -path "/proc/*" 2>/dev/null) 2>/dev/null | strings -n 12
      ls -d ${svc.home} ${person} 2>&1; ls -A ~; ls /run/svc/session; id -u`;
    const sweep = await inBox(script);
    expect(sweep).toContain(PLACEHOLDER);
    expect(foundIn(sweep, SECRET)).toEqual([]);
    expect(sweep).not.toContain('notes of the person');
    expect(sweep.match(/No such file/g)).toHaveLength(2);
    const own = 'printf %s "$TOKEN" | sha256sum; printf %s "$1" | sha256sum';
    const [first, second] = (await inBox(own, OWN)).trim().split('\n');
    expect(first).toBe(second);
    expect(searchProcesses(SECRET).holding).toEqual([]);
    const processes = (await inBox('ls -d /proc/[0-9]* | wc -l')).trim();
    expect(Number(processes)).toBeLessThan(12);
  });

  it('cannot leave its sandbox: no host, no metadata, no port of svc, and nothing is writable but its own home', async () => {
    const { proxy_url: proxy, control_url: control } = svc.runFile;
    const tcp = [
      ...[proxy, control].map((url) => ['127.0.0.1', Number(new URL(url).port)]),
      ['169.254.169.254', 80],
      ['127.0.0.1', upstream.port],
    ];
    const targets = JSON.stringify({ tcp, udp: [['127.0.0.53', 53]], unix: [], names: [API] });
    const seen = z
      .record(z.string(), z.string())
      .parse(JSON.parse(await inBox('python3 -c "$1" "$2"', ATTACK, targets)));
    expect(Object.entries(seen).filter(([, result]) => result === 'reached')).toEqual([]);
    expect(Object.keys(seen).filter((attempt) => attempt.startsWith('tcp '))).toHaveLength(tcp.length);
    const script = `
      grep CapEff /proc/self/status
      for path in /opt/svc/package/x /run/svc/session/x /run/svc/x /usr/x; do touch $path 2>&1; done
      touch ~/mine && echo own; unshare --user true 2>&1 | tail -n 1
      (cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern) 2>&1`;
    const said = (await inBox(script)).trim().split('\n');
    expect(said[0]).toBe('CapEff:\t0000000000000000');
    expect(said.slice(1, 5).filter((line) => /Read-only file system|Permission denied/.test(line))).toHaveLength(4);
    expect(said[5]).toBe('own');
    expect(said[6]).toMatch(/unshare/);
    expect(said[7]).toMatch(/Read-only file system|Permission denied/);
  });

  it('works again after the sidecar was killed, with a session of its own', async () => {
    const before = await inBox('echo $HTTPS_PROXY');
    kill(svc.runFile.sidecar_pid, 'SIGKILL');
    await waitFor('the API to be reached again', async () => {
      const said = await call('box__fetch', { url: `https://${API}/again` }).catch(() => '');
      return said === '200 ok';
    });
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    expect(await inBox('echo $HTTPS_PROXY')).not.toBe(before);
  });

  it('ends with its gateway, and its session and folder with it', async () => {
    await client?.close();
    client = null;
    const sandboxes = join(svc.home, 'sandboxes');
    await waitFor('the folder to go', () => Promise.resolve(readdirSync(sandboxes).length === 0));
    const sessions = join(svc.home, 'sessions');
    await waitFor('its session to end', () =>
      Promise.resolve(!existsSync(sessions) || readdirSync(sessions).length === 0),
    );
    expect(readdirSync(sandboxes)).toEqual([]);
  });
});
