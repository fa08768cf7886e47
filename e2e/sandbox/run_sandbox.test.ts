import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import { type Finished, ROOT, shellEnvironment, SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';

// `svc run --sandbox` as a person uses it. What does not get out of it is in escapes.test.ts.

const BOUND = 'api.example.test';
const OTHER = 'other.example.test';
const TOKEN = plantSecret();
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
const IS_ROOT = process.getuid?.() === 0;
const bubblewrap = findBubblewrap(machineFacts(PATH));
const canTry = bubblewrap.ok && probeBubblewrap(bubblewrap.value).ok;

const LISTING_SERVER = join(ROOT, 'e2e', 'mcp', 'listing_server.cjs');

/** What a client says to the gateway, a line each, to call a tool. */
function messagesFor(tool: string): string {
  const clientInfo = { name: 'test', version: '1' };
  const begin = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const messages = [
    { id: 1, method: 'initialize', params: begin },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: tool, arguments: {} } },
  ];
  return messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');
}

function status(host: string): string {
  return `curl -sS -o /dev/null -w '%{http_code} %{http_connect}' https://${host}/ 2>&1`;
}

describe.skipIf(!canTry)('svc run --sandbox', () => {
  let svc: Svc;
  let upstream: TlsUpstream;
  let root: string;
  let project: string;

  beforeAll(async () => {
    const ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([BOUND, OTHER]));
    const resolve = [BOUND, OTHER].map((host) => `${host}:127.0.0.1:${upstream.port}`);
    svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
    await svc.secret('user/api', TOKEN);
    await svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/api', emit_mechanism: 'inject' });
    root = mkdtempSync(join(tmpdir(), 'svc-e2e-run-sandbox-'));
    project = join(root, 'home', 'project');
    mkdirSync(project, { recursive: true });
    writeFileSync(join(root, 'home', 'notes.txt'), 'notes');
  });
  afterAll(async () => {
    await Promise.all([svc.stop(), upstream.close()]);
    rmSync(root, { recursive: true, force: true });
  });

  const run = (options: readonly string[], command: string, cwd = project): Promise<Finished> =>
    svc.cli(['run', '--sandbox', ...options, '--', 'sh', '-c', command], {
      cwd,
      env: { HOME: join(root, 'home'), PATH },
    });
  it('has exit status, output and files of the project as without it', async () => {
    const ran = await run([], 'echo out; echo kept > file; ls ~; exit 7');
    expect([ran.code, ran.stdout]).toEqual([7, 'out\nproject\n']);
    expect(existsSync(join(project, 'file'))).toBe(true);
    expect((await run([], 'kill -TERM $$')).code).toBe(143);
    // No folder of the protection is left, and none of the sandbox.
    expect(readdirSync(project)).toEqual(['file']);
    expect(readdirSync(join(svc.home, 'sandboxes'))).toEqual([]);
  });

  it('commits under the name of the person, whose other settings of git it does not have', async () => {
    const home = join(root, 'home');
    const settings = '[user]\n\tname = Ann\n\temail = ann@example.test\n[credential]\n\thelper = store\n';
    writeFileSync(join(home, '.gitconfig'), settings);
    const lines = ['git init -q . 2>&1', 'git commit -q --allow-empty -m one', 'git log --format="%an <%ae>"'];
    const others = ['git config --global --get credential.helper || echo none', 'git config --global user.name Bea'];
    const ran = await run([], [...lines, ...others].join('; '));
    rmSync(join(project, '.git'), { recursive: true, force: true });
    expect([ran.stdout, ran.code]).toEqual(['Ann <ann@example.test>\nnone\n', 0]);
    expect(readFileSync(join(home, '.gitconfig'), 'utf8')).toBe(settings);
  });

  it('adds the credential, and with sealed egress reaches only bound and allowed hosts', async () => {
    upstream.reset();
    const sealed = ['--egress=sealed'];
    expect((await run(sealed, `${status(BOUND)}; echo; ${status(OTHER)}`)).stdout).toMatch(/^200 200\n.*403/s);
    expect(upstream.requests.map((request) => request.headers('authorization'))).toEqual([[`Bearer ${TOKEN}`]]);
    expect((await run([...sealed, '--allow', OTHER], status(OTHER))).stdout).toBe('200 200');
    expect((await run([], status(OTHER))).stdout).toBe('200 200');
  });

  it('warns of MCP servers, which run outside of a sealed one', async () => {
    const ran = await run(['--egress=sealed', '--mcp', 'absent'], 'true');
    expect([ran.code, ran.stderr]).toEqual([125, expect.stringContaining('absent runs outside the sealed sandbox')]);
  });

  it("has svc's MCP gateway, with the servers that its session may use and no more", async () => {
    const tools = join(root, 'tools.json');
    writeFileSync(tools, JSON.stringify([{ name: 'look', inputSchema: { type: 'object' } }]));
    await svc.ok(['mcp', 'add', 'lists', '--isolation', 'process', '--', process.execPath, LISTING_SERVER, tools]);
    await svc.ok(['mcp', 'consent', '--yes']);
    const ask = messagesFor('lists__look');
    const gateway = `printf '%s' '${ask}' | env -i ${SVC} mcp gateway --home /gone`;
    expect((await run(['--mcp', 'lists'], gateway)).stdout).toContain('called look');
    // Not by what it sends: it has no server that nobody named or gave it.
    const forged = Buffer.from('{"session_id":null,"servers":null}').toString('base64url');
    const asHost = `curl -sS -H "Authorization: Bearer $SVC_TOKEN" -H 'svc-mcp-caller: ${forged}' -H 'accept: application/json, text/event-stream' --json '${ask.split('\n')[0]}' $SVC_URL/v1/mcp`;
    const bare = await run([], `${gateway}; ${asHost}; ${SVC} status; ${SVC} mcp gateway --server lists`);
    expect(bare.stdout).not.toContain('called look');
    expect(bare.stdout).toContain('"serverInfo"');
    expect(bare.stderr).toContain('--server does not work in a sandbox');

    // An agent that a person gave the gateway has every server.
    const env = { HOME: join(root, 'home'), PATH: `${join(root, 'bin')}:${PATH}` };
    mkdirSync(join(root, 'bin'));
    writeFileSync(join(root, 'bin', 'kilo'), `#!/bin/sh\n${gateway}\n`, { mode: 0o755 });
    mkdirSync(join(svc.home, 'agents'), { recursive: true, mode: 0o700 });
    const profile = [
      '{name: kilo, title: Kilo, command: kilo, install: none, tried: null, logins: []',
      'source: {title: None, url: https://kilo.example.test}, sandbox: {writes: [{path: ~/.kilo}]}}',
    ].join(', ');
    writeFileSync(join(svc.home, 'agents', 'kilo.yaml'), profile, { mode: 0o600 });
    const agent = (): Promise<Finished> => svc.cli(['run', 'kilo'], { cwd: project, env });
    expect((await agent()).stdout).not.toContain('called look');
    const file = join(root, 'home', '.kilo', 'mcp.json');
    await svc.ok(['mcp', 'export', '--client', 'kilo', '--write', '--file', file], { cwd: project, env });
    const given = await agent();
    expect([given.stdout, given.stderr]).toEqual([
      expect.stringContaining('called look'),
      expect.stringContaining('svc: sandbox: Kilo'),
    ]);
  });

  it('shows what is asked for, and refuses a home as the project', async () => {
    const notes = join(root, 'home', 'notes.txt');
    expect((await run(['--sandbox-read', notes], `cat ${notes}; echo more >> ${notes}`)).stdout).toBe('notes');
    const refused = await run([], 'true', join(root, 'home'));
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('is your home')]);
  });

  it('of a script among documents shows the script, and no document', async () => {
    const documents = join(root, 'home', 'Documents');
    mkdirSync(documents);
    writeFileSync(join(documents, 'letter'), 'private');
    writeFileSync(join(documents, 'tool.sh'), '#!/bin/sh\nls "$HOME/Documents"\n', { mode: 0o755 });
    const env = { HOME: join(root, 'home'), PATH };
    const ran = await svc.cli(['run', '--sandbox', '--', join(documents, 'tool.sh')], { cwd: project, env });
    rmSync(documents, { recursive: true });
    expect([ran.code, ran.stdout]).toEqual([0, 'tool.sh\n']);
  });

  it('keeps the hooks of a repository below the project and the settings of agents read-only', async () => {
    const ran = await run(
      [],
      'git init -q app && mkdir .claude app/.git/hooks 2>/dev/null; ls -A; echo x > .cursor/hooks.json',
    );
    expect(ran.stderr).toMatch(/hooks\.json/);
    expect(existsSync(join(project, '.cursor'))).toBe(false);
    const again = await run(
      [],
      'echo evil > app/.git/hooks/pre-commit; echo evil >> app/.git/config; echo kept > app/file',
    );
    expect(again.stderr.match(/Read-only file system/g)).toHaveLength(2);
    expect(readFileSync(join(project, 'app', 'file'), 'utf8')).toBe('kept\n');
    rmSync(join(project, 'app'), { recursive: true });
  });

  it.skipIf(!IS_ROOT)("has not what root alone may read in /etc, such as a control plane's master key", async () => {
    const settings = mkdtempSync('/etc/svc-e2e-');
    try {
      chmodSync(settings, 0o755);
      writeFileSync(join(settings, 'control.env'), 'SVC_VAULT_KEY=planted', { mode: 0o600 });
      writeFileSync(join(settings, 'public'), 'for everybody', { mode: 0o644 });
      const ran = await run([], `cat ${settings}/*; ls -A /etc/ssl/private; grep -c ^root: /etc/shadow /etc/passwd`);
      expect(ran.stdout).toBe('for everybody/etc/passwd:1\n');
    } finally {
      rmSync(settings, { recursive: true, force: true });
    }
  });

  it('is reported by svc sandbox check, as tried in one', async () => {
    mkdirSync(join(root, 'home', '.ssh'), { recursive: true });
    writeFileSync(join(root, 'home', '.ssh', 'id'), 'key');
    const env = { HOME: join(root, 'home'), PATH };
    const rows: unknown = JSON.parse(await svc.ok(['sandbox', 'check', '--json'], { cwd: project, env }));
    expect(rows).toContainEqual({ what: 'shown', name: project, result: 'writable' });
    const keys = { what: 'keys and logins of other programs', name: join(root, 'home', '.ssh'), result: 'hidden' };
    expect(rows).toContainEqual(keys);
    expect(rows).toContainEqual({ what: 'the state directory of svc', name: svc.home, result: 'hidden' });
    expect(rows).toContainEqual({ what: 'network', name: 'a route out, besides the proxy', result: 'none' });
  });

  it('reaches the proxy again after the sidecar was killed', async () => {
    const first = join(project, 'first');
    const command = `${status(BOUND)} > first; while [ ! -e go-on ]; do sleep 0.1; done; ${status(BOUND)}`;
    const running = run(['--egress=sealed'], command);
    await waitFor('the first request', () => readIfThere(first) === '200 200');
    kill(svc.runFile.sidecar_pid, 'SIGKILL');
    await svc.comesBack();
    await expect.poll(() => svc.health()).toBe('ok');
    writeFileSync(join(project, 'go-on'), '');
    expect((await running).stdout).toBe('200 200');
  });

  it('beside another in the same project keeps what runs later read-only after that one ends, and leaves nothing', async () => {
    const shared = join(root, 'home', 'shared');
    mkdirSync(shared);
    const first = run([], 'touch first; while [ ! -e end ]; do sleep 0.1; done', shared);
    await waitFor('the first sandbox', () => existsSync(join(shared, 'first')));
    const waits = 'touch second; while [ ! -e ended ]; do sleep 0.1; done';
    const second = run([], `${waits}; mkdir -p .vscode; touch .vscode/tasks.json; echo $?`, shared);
    await waitFor('the second sandbox', () => existsSync(join(shared, 'second')));
    writeFileSync(join(shared, 'end'), '');
    expect((await first).code).toBe(0);
    writeFileSync(join(shared, 'ended'), '');
    const { stdout, stderr } = await second;
    expect([stdout, stderr]).toEqual(['1\n', expect.stringContaining('Read-only file system')]);
    expect(readdirSync(shared).toSorted()).toEqual(['end', 'ended', 'first', 'second']);
  });

  it('tells what another program replaced, which no mount covers any more', async () => {
    const file = join(project, '.envrc');
    writeFileSync(file, 'export A=1');
    const running = run([], 'touch looks; while [ ! -e replaced ]; do sleep 0.1; done; echo mine > .envrc');
    await waitFor('the sandbox', () => existsSync(join(project, 'looks')));
    // Twice: a file system gives the number of the first file to the third.
    for (const text of ['export A=2', 'export A=3']) {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
    writeFileSync(join(project, 'replaced'), '');
    expect((await running).stderr).toContain(`another program replaced ${file} while the sandbox ran`);
    rmSync(file);
    expect((await run([], 'true')).stderr).not.toContain('replaced');
  });

  it('ends with svc run, also if that is killed', async () => {
    const mark = join(project, 'started');
    const env = { ...shellEnvironment(), HOME: join(root, 'home'), PATH, SVC_HOME: svc.home };
    const command = `echo $$ > ${mark}; exec sleep 86399`;
    const child = spawn(SVC, ['run', '--sandbox', '--', 'sh', '-c', command], { cwd: project, env, stdio: 'ignore' });
    await waitFor('the command to run', () => existsSync(mark));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    await expect.poll(() => listCommands().filter((line) => line.includes('86399'))).toEqual([]);
  });
});

function readIfThere(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function listCommands(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandOf(pid));
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
