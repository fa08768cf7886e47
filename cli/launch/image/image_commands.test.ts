import { Command } from 'commander';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { err, ok } from '../../../shared/model/result.ts';
import type { ContainerRuntime } from '../../../sandbox/engine/container_runtime.ts';
import { commandLine, runCommandLine } from '../../command_line.ts';
import { BASE_PROBE } from '../../../sandbox/contract/mcp_helper_node.ts';
import { addImageCommands, type ImageEngine } from './image_commands.ts';
import { sampleImage } from '../../../sandbox/engine/testing/sample_image.ts';

const GOOD = `svc-install-proxy-ca=/usr/local/bin/svc-install-proxy-ca
svc-run-with-proxy-ca=/usr/local/bin/svc-run-with-proxy-ca
svc-run-step=/usr/local/bin/svc-run-step
contract=1
check=0
said:layout=debian
said:java=no
said:agent=agent
said:uid=1000
said:gid=1000
said:home=/home/agent
said:certutil=no
said:steps=yes
mcp-node=v24.1.0
`;

let home = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-image-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly builds: readonly (readonly string[])[];
  /** The build folders that were created and removed. */
  readonly contexts: readonly unknown[];
}

const image = sampleImage();

async function svc(
  argv: readonly string[],
  probe = GOOD,
  buildCode = 0,
  uid: number | null = null,
  base = '',
): Promise<Ran> {
  const [stdout, stderr] = [new Sink(), new Sink()];
  const builds: (readonly string[])[] = [];
  const contexts: unknown[] = [];
  const missing = { reason: 'image_missing', message: 'the engine has no such image', fixes: [] } as const;
  const runtime: Pick<ContainerRuntime, 'endpoint' | 'inspectImage' | 'runProbe'> = {
    endpoint: 'unix:///engine.sock',
    inspectImage: (name) => Promise.resolve(name === 'absent' ? err(missing) : ok(image)),
    runProbe: (_image, script) => Promise.resolve(ok(script === BASE_PROBE ? base : probe)),
  };
  const engine: ImageEngine = {
    openRuntime: () => Promise.resolve(ok(runtime)),
    build: (_call, _endpoint, args) => {
      builds.push(args);
      return Promise.resolve(buildCode);
    },
    uid,
    makeContext: (source, node) => {
      contexts.push({ source, node });
      return Promise.resolve({ path: '/context', remove: () => Promise.resolve(void contexts.push('removed')) });
    },
    ownNode: { platform: 'linux', architecture: 'x64', isGlibc: true, path: '/usr/bin/own-node' },
  };
  const line = commandLine(
    {
      env: { SVC_HOME: home },
      stdin: Readable.from([]),
      interactive: false,
      stdout,
      stderr,
      userHome: home,
      workingDirectory: home,
      root: '/checkout',
      version: '4.0.0',
      compileCache: home,
      fetch,
      now: () => 0,
      pause: () => Promise.resolve(),
      stop: new AbortController().signal,
      isInForeground: () => true,
      renewStop: () => {},
    },
    new Command('svc').option('--json'),
  );
  addImageCommands(line, engine);
  const code = await runCommandLine(line, argv);
  return { code, stdout: stdout.text, stderr: stderr.text, builds, contexts };
}

describe('svc image check', () => {
  test('prints the facts of the image', async () => {
    const ran = await svc(['image', 'check', 'mine']);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout).toContain('agent (1000:1000)');
  });

  test('a missing svc-mcp is reported and is not a failure', async () => {
    const withMcp = await svc(['image', 'check', 'mine']);
    expect(withMcp.stdout).toContain('svc-mcp      runs with Node v24.1.0');
    rmSync(join(home, 'image_checks.json'));
    const without = await svc(['image', 'check', 'mine'], GOOD.replace(/^mcp-node.*\n/m, ''));
    expect(without.code).toBe(0);
    expect(without.stdout).toContain('svc-mcp      is not in the image (optional)');
  });

  test('prints the facts as JSON', async () => {
    const ran = await svc(['image', 'check', 'mine', '--json']);
    expect(JSON.parse(ran.stdout)).toMatchObject({ ok: true, image: 'mine', image_id: 'sha256:abc', layout: 'debian' });
    expect(JSON.parse(ran.stdout)).toMatchObject({ svc_mcp_node: 'v24.1.0' });
  });

  test('fails with what is missing, for a person and for a program', async () => {
    const person = await svc(['image', 'check', 'mine'], 'missing=svc-run-step\nmissing=user\n');
    expect(person).toMatchObject({ code: 1, stdout: '' });
    expect(person.stderr).toContain('--sandbox-proxy=off');
    const program = await svc(['image', 'check', 'mine', '--json'], 'missing=svc-run-step\nmissing=user\n');
    expect(program.code).toBe(1);
    expect(JSON.parse(program.stdout)).toMatchObject({
      ok: false,
      problems: [{ missing: 'helper' }, { missing: 'agent_user' }],
    });
  });

  test("escapes control characters in an image's output", async () => {
    const ran = await svc(
      ['image', 'check', 'mine'],
      GOOD.replace('check=0', 'check=20').replace('said:java=no', 'said:\u001b[2J'),
    );
    expect(ran.stderr).not.toContain('\u001b');
  });

  test('names the image that the engine does not have', async () => {
    expect(await svc(['image', 'check', 'absent', '--json'])).toMatchObject({ code: 1, stdout: '' });
  });
});

describe('svc image build', () => {
  test('builds with the given base and user, without the network, and checks the result', async () => {
    const ran = await svc(['image', 'build', '--base', 'b', '--tag', 't', '--agent-user', 'dev']);
    expect(ran.code).toBe(0);
    expect(ran.builds).toEqual([
      ['build', '--network=none', '--build-arg=BASE=b', '--build-arg=AGENT_USER=dev', '--tag=t', '/context'],
    ]);
    expect(ran.stdout).toContain('t can run behind the proxy');
  });

  test.each([
    [1001, [], ['--build-arg=AGENT_UID=1001']],
    [0, [], []],
    [null, [], []],
    [1001, ['--agent-uid', '7'], ['--build-arg=AGENT_UID=7']],
  ])('the agent of user %j with %j can write mounted files', async (uid, options, wanted) => {
    const ran = await svc(['image', 'build', '--base', 'b', '--tag', 't', ...options], GOOD, 0, uid);
    expect(ran.builds[0]?.filter((argument) => argument.includes('AGENT_UID'))).toEqual(wanted);
  });

  test.each(['0', 'root', '-1', '01'])('refuses --agent-uid %j', async (uid) => {
    const ran = await svc(['image', 'build', '--base', 'b', '--tag', 't', `--agent-uid=${uid}`]);
    expect([ran.code, ran.builds]).toEqual([2, []]);
    expect(ran.stderr).toContain('give a user id above 0');
  });

  test.each([
    ['libc=glibc\ncxx=yes\n', '/usr/bin/own-node', ''],
    ['node=v22.1.0\n', null, ''],
    ['', null, 'the image will have no svc-mcp'],
  ])('copies its Node for svc-mcp into a base that is %j: %j', async (base, node, warned) => {
    const ran = await svc(['image', 'build', '--base', 'b', '--tag', 't'], GOOD, 0, null, base);
    expect(ran.contexts).toEqual([{ source: '/checkout/sandbox/image', node }, 'removed']);
    expect(ran.stderr).toContain(warned);
    expect(ran.stderr === '').toBe(warned === '');
  });

  test('leaves svc-mcp out on request', async () => {
    const line = ['image', 'build', '--base', 'b', '--tag', 't', '--no-svc-mcp'];
    const ran = await svc(line, GOOD, 0, null, 'libc=glibc\ncxx=yes\n');
    expect(ran.builds[0]).toContain('--build-arg=SVC_MCP=no');
    expect(ran.contexts).toEqual([{ source: '/checkout/sandbox/image', node: null }, 'removed']);
  });

  test('removes its folder if the build fails', async () => {
    expect((await svc(['image', 'build', '--base', 'b', '--tag', 't'], GOOD, 3)).contexts.at(-1)).toBe('removed');
  });

  test('fails if the build fails, and if the image does not meet the contract', async () => {
    expect(await svc(['image', 'build', '--base', 'b', '--tag', 't'], GOOD, 3)).toMatchObject({ code: 1, stdout: '' });
    expect((await svc(['image', 'build', '--base', 'b', '--tag', 't'], 'contract=1')).code).toBe(1);
  });

  test.each([[['--base', 'b']], [['--tag', 't']]])('needs both base and tag: refuses %j alone', async (flags) => {
    expect(await svc(['image', 'build', ...flags])).toMatchObject({ code: 2, builds: [] });
  });
});
