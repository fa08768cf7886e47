import { EventEmitter, once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findSandboxExec } from '../../sandbox/seatbelt/find_sandbox_exec.ts';
import { readProfile } from '../../sandbox/seatbelt/testing/read_profile.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Call } from '../command_line.ts';
import { printerFor } from '../terminal/output.ts';
import { testContext, TestHome } from '../testing/run_cli.ts';
import { openMacSandbox } from './mac_sandbox.ts';
import type { HostSandbox } from './host_sandbox.ts';

// `svc run --sandbox` of macOS with a stand-in for sandbox-exec, which keeps its profile and runs the command.

describe('the sandbox of macOS', () => {
  let home: TestHome;
  let folder: string;
  let project: string;
  let program: string;
  let call: Call;
  let sidecar: Server | null;
  let box: HostSandbox | null;

  beforeEach(() => {
    home = new TestHome();
    folder = realpathSync(mkdtempSync('/var/tmp/svc-mac-'));
    project = join(folder, 'home/my "shop"');
    mkdirSync(project, { recursive: true });
    program = join(folder, 'sandbox-exec');
    const lines = ['#!/bin/sh', '[ "$1" = -f ] || exit 65', `cp "$2" '${folder}/profile'`, 'shift 2', 'exec "$@"', ''];
    writeFileSync(program, lines.join('\n'), { mode: 0o755 });
    const { context } = testContext(home, { workingDirectory: project, userHome: join(folder, 'home') });
    call = { context, args: [], options: {}, print: printerFor(context, {}) };
    sidecar = null;
    box = null;
  });
  afterEach(async () => {
    await box?.close();
    sidecar?.close();
    home.remove();
    rmSync(folder, { recursive: true });
  });

  const wanted = { egress: 'sealed', readable: [], writable: [], agent: null } as const;
  async function open(args: readonly string[]): Promise<HostSandbox> {
    box = await openMacSandbox(call, wanted, { command: '/bin/sh', args: ['-c', ...args] }, () => ok(program));
    return box;
  }
  const session = {
    sessionId: 'ses_1',
    proxyUrl: 'http://ses_1:token@127.0.0.1:7421',
    caBundlePath: '/proc/self/mounts',
    sentinels: [],
  };

  it('runs the command under a profile that opens the port of its session alone', async () => {
    const opened = await open(['echo "$HTTPS_PROXY" >out; exit 7', 'sh']);
    expect(opened.field).toMatchObject({
      mode: 'sandbox-exec',
      egress: 'sealed',
      folder: expect.stringMatching(/^\d+-\d+$/),
    });
    const inside = opened.enter(session);
    const { port, username } = new URL(inside.proxyUrl);
    expect([username, port]).not.toEqual(['ses_1', '7421']);
    const ended = await opened.run({ HTTPS_PROXY: inside.proxyUrl, SSH_AUTH_SOCK: '/tmp/agent' }, new EventEmitter());
    expect(ended).toMatchObject({ kind: 'exited', code: 7 });
    expect(readFileSync(join(project, 'out'), 'utf8').trim()).toBe(inside.proxyUrl);
    const profile = readFileSync(join(folder, 'profile'), 'utf8');
    expect(profile).toContain(`(remote ip "localhost:${port}")`);
    const decide = readProfile(profile);
    expect(decide('file-write-create', join(project, 'new'))).toBe('allow');
    expect(decide('file-read-data', inside.caBundlePath)).toBe('allow');
    expect(decide('file-read-data', join(home.path, 'local.key'))).toBe('deny');
    expect(decide('file-read-data', join(folder, 'home/.zshrc'))).toBe('deny');
  });

  it('carries connections of that port to the socket of the session', async () => {
    const opened = await open([':', 'sh']);
    const socket = join(home.path, 'sandboxes', opened.field.folder, 'proxy.sock');
    sidecar = createServer((connection) => connection.end('the proxy')).listen(socket);
    await once(sidecar, 'listening');
    const { port } = new URL(opened.enter(session).proxyUrl);
    const { connect } = await import('node:net');
    const connection = connect(Number(port), '127.0.0.1');
    const [said] = await once(connection.setEncoding('utf8'), 'data');
    expect(said).toBe('the proxy');
  });

  it('leaves nothing behind', async () => {
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith('svc-sandbox-'));
    const opened = await open([':', 'sh']);
    const { port } = new URL(opened.enter(session).proxyUrl);
    await opened.close();
    expect(readdirSync(join(home.path, 'sandboxes'))).toEqual([]);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('svc-sandbox-'))).toEqual(before);
    const { connect } = await import('node:net');
    await expect(once(connect(Number(port), '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED');
  });

  it('passes on neither sockets of the desktop nor the folder of temporary files', async () => {
    const opened = await open(['env >out', 'sh']);
    opened.enter(session);
    await opened.run({ PATH: '/usr/bin:/bin', SSH_AUTH_SOCK: '/tmp/agent', TMPDIR: '/tmp' }, new EventEmitter());
    const seen = readFileSync(join(project, 'out'), 'utf8');
    expect(seen).not.toContain('SSH_AUTH_SOCK');
    expect(/^TMPDIR=(.*)$/m.exec(seen)?.[1]).toMatch(/svc-sandbox-/);
  });

  it('refuses the home as a project, and says what to do', async () => {
    const { context } = testContext(home, { workingDirectory: join(folder, 'home'), userHome: join(folder, 'home') });
    const refused = openMacSandbox({ ...call, context }, wanted, { command: 'sh', args: [] }, () => ok(program));
    await expect(refused).rejects.toThrow('is your home');
    expect(existsSync(join(home.path, 'sandboxes'))).toBe(false);
  });

  it('is refused without sandbox-exec, which is looked for in one place', async () => {
    const looked: string[] = [];
    const found = findSandboxExec((path) => {
      looked.push(path);
      return false;
    });
    expect(looked).toEqual(['/usr/bin/sandbox-exec']);
    expect(found).toMatchObject({ ok: false, error: { message: expect.stringContaining('/usr/bin/sandbox-exec') } });
    const error = found.ok ? { message: '', fixes: [] } : found.error;
    const refused = openMacSandbox(call, wanted, { command: 'sh', args: [] }, () => err(error));
    await expect(refused).rejects.toThrow('/usr/bin/sandbox-exec');
  });
});
