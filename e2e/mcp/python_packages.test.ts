import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HANGS_MS } from '../support/hangs.ts';
import { countOf, ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { Svc } from '../support/svc.ts';
import { SVC } from '../support/program.ts';
import { earlierClient } from './gateway/test_clients.ts';
import { startPythonIndex, type TestIndex, type TestWheel, wheelOf } from './python_index.ts';
import { type InstalledPackage, PackageStore } from '../../gateway/packages/package_store.ts';
import { readPackageCommand } from '../../shared/mcp/package_command.ts';

// The installs of Python packages for MCP servers, with the real pip and an index on this machine.

const never = new AbortController().signal;

let home: string;
let index: TestIndex;
let told: string[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-python-'));
  index = await startPythonIndex([serverWheel(), greeting('1.0.0')]);
  told = [];
});
afterEach(async () => {
  await index.stop();
  rmSync(home, { recursive: true, force: true });
});

const PROGRAM = `import sys, subprocess, greeting
def main():
    child = subprocess.run([sys.executable, "-c", "import greeting; print(greeting.TEXT)"], capture_output=True, text=True)
    print(greeting.TEXT, child.stdout.strip(), *sys.argv[1:])
`;

function serverWheel(more: Partial<TestWheel> = {}): TestWheel {
  return {
    name: 'acme-server',
    version: '1.0.0',
    files: { 'acme_server/__init__.py': PROGRAM },
    requires: ['greeting>=1'],
    scripts: { 'acme-server': 'acme_server:main' },
    ...more,
  };
}

const greeting = (version: string, more: Partial<TestWheel> = {}): TestWheel => ({
  name: 'greeting',
  version,
  files: { 'greeting.py': `TEXT = "hello ${version}"\n` },
  ...more,
});

function environment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    PIP_CONFIG_FILE: '/dev/null',
    PIP_INDEX_URL: index.url,
    PIP_RETRIES: '0',
    ...more,
  };
}

const open = (more: Readonly<Record<string, string>> = {}): PackageStore =>
  new PackageStore({ mcpHome: join(home, 'mcp'), env: environment(more), pid: process.pid });

function specOf(...words: string[]) {
  const read = readPackageCommand(words);
  if (read === null) throw new Error('not a command of a package');
  return read.spec;
}

const SPEC = specOf('uvx', 'acme-server@1.0.0');
const install = (store = open(), spec = SPEC) =>
  store.install(spec, { signal: never, tell: (text) => told.push(text) });
const packagesFolder = () => join(home, 'mcp', 'packages');
const records = () => readdirSync(packagesFolder()).filter((name) => name.endsWith('.json'));
const folders = () => readdirSync(packagesFolder()).filter((name) => !name.endsWith('.json'));

async function installed(store = open(), spec = SPEC): Promise<InstalledPackage> {
  const done = await install(store, spec);
  if (!done.ok) throw new Error(done.error);
  return done.value;
}

function outputOf({ start: { command } }: InstalledPackage): string {
  const [program = '', ...args] = command;
  const { stdout, stderr } = spawnSync(program, [...args, 'a', 'b'], { encoding: 'utf8', cwd: home, env: {} });
  return `${stdout}${stderr}`;
}

describe('an install of a Python package', () => {
  test('has the package and its dependencies, is found again, and needs no index then', async () => {
    expect(open().find(SPEC)).toBeNull();
    const done = await installed();
    await index.stop();
    expect(outputOf(done)).toBe('hello 1.0.0 hello 1.0.0 a b\n');
    expect(open().find(SPEC)).toMatchObject({ release: '1.0.0', packages: 2, withScripts: [] });
    expect(folders()).toHaveLength(1);
    expect(told).toEqual(['installing acme-server@1.0.0: 2 packages']);
    expect(existsSync(join(done.folder, 'tmp'))).toBe(false);
  });

  test('is planned first, with a hash of each wheel, and brings what was planned, whatever the machine has', async () => {
    const library = join(home, 'others');
    mkdirSync(library);
    writeFileSync(join(library, 'greeting.py'), 'TEXT = "stranger"\n');
    const store = open({ PYTHONPATH: library, PIP_USER: '1', PIP_REQUIRE_VIRTUALENV: '1', PIP_NO_BINARY: ':all:' });
    const plan = await store.plan(SPEC, never);
    if (!plan.ok) throw new Error(plan.error);
    expect(plan.value).toMatchObject({ release: '1.0.0', withScripts: [] });
    expect(plan.value.tarballs).toHaveLength(2);
    expect(plan.value.lock.match(/"sha256":"[0-9a-f]{64}"/g)).toHaveLength(2);
    expect(store.find(SPEC)).toBeNull();
    index.publish(greeting('1.1.0'));
    const done = await store.install(SPEC, { signal: never, tell: () => {}, plan: plan.value });
    expect(done.ok && outputOf(done.value)).toBe('hello 1.0.0 hello 1.0.0 a b\n');
  });
});

const MARK = 'import pathlib; pathlib.Path(__import__("os").environ["HOME"], "ran").write_text("x")\n';

/** A source archive in a folder, which runs code if it is built. */
function sourceFolder(): string {
  const folder = join(home, 'source');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'setup.py'),
    `${MARK}from setuptools import setup\nsetup(name="greeting", version="1.0.0")\n`,
  );
  return folder;
}

describe('an install that fails leaves nothing behind, and runs no code of a package', () => {
  const failures: readonly (readonly [string, () => void, RegExp])[] = [
    [
      'a dependency has only a source archive',
      () => {
        index.publish(serverWheel({ requires: ['sourced'] }));
        index.add({ project: 'sourced', file: 'sourced-1.0.0.tar.gz', content: Buffer.from('x') });
      },
      /svc installs wheels and builds nothing.*pip wheel --no-deps/,
    ],
    [
      'a dependency is a directory of this machine',
      () => index.publish(serverWheel({ requires: [`greeting @ file://${sourceFolder()}`] })),
      /svc lets pip start no program/,
    ],
    [
      'a dependency is a repository',
      () => index.publish(serverWheel({ requires: ['greeting @ git+http://127.0.0.1:1/a.git'] })),
      /could not be resolved/,
    ],
    [
      'a dependency is a wheel by a URL of its publisher',
      () => {
        writeFileSync(join(home, 'greeting-1.0.0-py3-none-any.whl'), wheelOf(greeting('1.0.0')));
        const url = `file://${join(home, 'greeting-1.0.0-py3-none-any.whl')}`;
        index.publish(serverWheel({ requires: [`greeting @ ${url}`] }));
      },
      /"greeting", which its publisher fetches from elsewhere/,
    ],
    [
      'its files would be outside of the folder',
      () => index.publish(serverWheel({ files: { '../../../../escaped.py': 'x = 1\n' } })),
      /could not be/,
    ],
    [
      'it brings a file of svc',
      () =>
        index.publish(
          serverWheel({ files: { ...serverWheel().files, 'acme_server-1.0.0.data/data/../../svc_start.py': MARK } }),
        ),
      /./,
    ],
    [
      'it needs another Python',
      () => index.publish(serverWheel({ requiresPython: '>=3.99' })),
      /another Python.*uvx --python/,
    ],
    ['the index is gone', () => void index.stop(), /could not be resolved/],
    [
      'the release does not exist',
      () => index.publish(serverWheel({ requires: ['greeting>=9'] })),
      /No matching distribution/,
    ],
  ];
  // The last three run no code and are refused by pip itself.
  test.each(sampleOf(failures, failures.length - 3))('%s', async (_, prepare, said) => {
    prepare();
    const done = await install();
    expect(done.ok ? '' : done.error).toMatch(said);
    expect(readdirSync(packagesFolder())).toEqual([]);
    for (const name of ['ran', 'escaped.py']) expect(existsSync(join(home, name))).toBe(false);
  });

  test('there is no python3, no pip, or one that is too old', async () => {
    const bin = join(home, 'bin');
    mkdirSync(bin);
    expect(await install(open({ PATH: bin }))).toMatchObject({
      ok: false,
      error: expect.stringContaining('python3 is not on the PATH; install Python 3.10 or later with pip'),
    });
    const answer = { executable: '/usr/bin/python3', version: '3.11', platform: 'x', prefix: '/usr' };
    for (const [pip, said] of [
      ['', 'apt install python3-pip'],
      ['21.3.1', 'pip is 21.3.1, and 22.2 or later is needed'],
    ] as const) {
      const text = JSON.stringify({ ...answer, pip });
      writeFileSync(join(bin, 'python3'), `#!/bin/sh\necho '${text}'\n`, { mode: 0o755 });
      expect(await install(open({ PATH: bin }))).toMatchObject({ ok: false, error: expect.stringContaining(said) });
    }
  });

  test('it is stopped', async () => {
    const stop = new AbortController();
    index.beforeAnswer = () => {
      stop.abort();
      return new Promise(() => {});
    };
    const done = await open().install(SPEC, { signal: stop.signal, tell: () => {} });
    expect(done).toMatchObject({ ok: false, error: expect.stringContaining('stopped') });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });
});

describe('a damaged Python package', () => {
  test('is installed again as it was, and never from another wheel under the same version', async () => {
    const store = open();
    const { folder } = await installed(store);
    rmSync(join(folder, 'lib', 'greeting.py'));
    expect(store.find(SPEC)).toBeNull();
    index.publish(greeting('1.1.0'));
    const again = await installed(store);
    expect(outputOf(again)).toBe('hello 1.0.0 hello 1.0.0 a b\n');
    index.publish(greeting('1.0.0', { files: { 'greeting.py': 'TEXT = "evil"\n' } }));
    rmSync(again.folder, { recursive: true });
    rmSync(join(home, '.cache'), { recursive: true, force: true });
    expect(await install(store)).toMatchObject({ ok: false, error: expect.stringContaining('could not be installed') });
    expect(store.find(SPEC)).toBeNull();
  });

  test.each(ONLY_FULL)('of a Python that is gone is installed for the new one only after a look%s', async () => {
    const store = open();
    const { folder } = await installed(store);
    const record = join(packagesFolder(), records()[0] ?? '');
    for (const path of [record, join(folder, 'svc-python-lock.json')]) {
      const text = readFileSync(path, 'utf8');
      writeFileSync(path, text.replace(/(executable(?:\\)?":(?:\\)?")[^"\\]+/, '$1/gone/python3.9'));
      expect(readFileSync(path, 'utf8')).not.toBe(text);
    }
    expect(store.find(SPEC)).toBeNull();
    expect(await install(store)).toMatchObject({ ok: false, error: expect.stringContaining('svc mcp consent SERVER') });
    const plan = await store.plan(SPEC, never);
    if (!plan.ok) throw new Error(plan.error);
    const done = await store.install(SPEC, { signal: never, tell: () => {}, plan: plan.value });
    expect(done.ok && outputOf(done.value)).toBe('hello 1.0.0 hello 1.0.0 a b\n');
  });
});

/** An install in a process of its own, so that it can be killed. */
const KILLED = `
import { PackageStore } from ${JSON.stringify(join(import.meta.dirname, '../../gateway/packages/package_store.ts'))};
const [mcpHome, spec] = process.argv.slice(2);
const store = new PackageStore({ mcpHome, env: process.env, pid: process.pid });
const done = await store.install(JSON.parse(spec), { signal: new AbortController().signal, tell: () => {} });
process.exit(done.ok ? 0 : 1);
`;

test(
  'an install that is killed at any moment leaves no half package',
  { timeout: countOf(3_600_000, HANGS_MS) },
  async () => {
    const script = join(home, 'install.ts');
    writeFileSync(script, KILLED);
    const args = ['--no-warnings', script, join(home, 'mcp'), JSON.stringify(SPEC)];
    const start = () => {
      const child = spawn(process.execPath, args, { env: environment(), stdio: 'ignore', detached: true });
      const ended = new Promise<number | null>((resolve) => void child.once('exit', resolve));
      return { child, ended };
    };
    const begin = Date.now();
    expect(await start().ended).toBe(0);
    const wholeMs = Date.now() - begin;
    const moments = countOf(50, 1);
    for (let moment = 0; moment < moments; moment += 1) {
      for (const name of records()) rmSync(join(packagesFolder(), name));
      const { child, ended } = start();
      await delay((wholeMs * (moment + Math.random())) / moments);
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
      await ended;
      const found = open().find(SPEC);
      expect([found === null, found === null ? 'hello 1.0.0 hello 1.0.0 a b\n' : outputOf(found)]).toEqual([
        records().length === 0,
        'hello 1.0.0 hello 1.0.0 a b\n',
      ]);
    }
    // The next start installs it, and removes what is left of the installs before.
    const store = open();
    expect(outputOf(await installed(store))).toBe('hello 1.0.0 hello 1.0.0 a b\n');
    await store.sweep();
    expect(folders()).toHaveLength(1);
  },
);

/** An MCP server without any library. */
const MCP_PROGRAM = `import json, sys
TOOL = {"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}
def answer(method, params):
    if method == "initialize":
        info = {"name": "acme", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    import greeting
    return {"content": [{"type": "text", "text": greeting.TEXT}]}
def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params"))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
`;

test('svc mcp add installs a Python server, and a gateway only starts it', async () => {
  index.publish(serverWheel({ files: { 'acme_server/__init__.py': MCP_PROGRAM } }));
  const svc = await Svc.up();
  try {
    const env = { ...environment(), SVC_HOME: svc.home };
    const command = ['mcp', 'add', 'acme', '--isolation', 'process', '--', 'uvx', 'acme-server@1.0.0'];
    const added = await svc.cli(command, { env });
    expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('installed acme-server@1.0.0 (2 packages')]);
    expect(added.stderr).toContain('installs acme-server@1.0.0, 2 packages');
    await index.stop();
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const args = [...variables, SVC, 'mcp', 'gateway'];
    const client = await earlierClient({ kind: 'stdio', command: 'env', args });
    try {
      expect((await client.listTools()).map(({ name }) => name)).toContain('acme__greet');
      expect((await client.callTool('acme__greet')).content[0]?.text).toBe('hello 1.0.0');
    } finally {
      await client.close();
    }
  } finally {
    await svc.stop();
  }
});
