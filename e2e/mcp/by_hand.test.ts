import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT, runOk, SVC } from '../support/program.ts';
import { kill } from '../support/process.ts';
import { Svc } from '../support/svc.ts';
import { freePort } from '../support/free_port.ts';
import { listen } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { earlierClient, type TestClient } from './gateway/test_clients.ts';
import { zipOf } from './python_index.ts';

// What docs/mcp.md says about packages that svc does not install: its commands, as they are there.

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

/** A server without any library. */
const PROGRAM = `
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'b', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'greet', inputSchema: { type: 'object' } }] }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }));
});
`;

let svc: Svc;
let person: string;
let client: TestClient | null = null;
let listening: ChildProcess | null = null;
beforeAll(async () => {
  person = mkdtempSync(join(tmpdir(), 'svc-by-hand-'));
  svc = await Svc.up();
});
afterAll(async () => {
  await client?.close().catch(() => undefined);
  kill(listening?.pid, 'SIGKILL');
  await svc.stop();
  rmSync(person, { recursive: true, force: true });
});

/** The lines of the block of the documents that has this line. */
function documented(line: string): readonly string[] {
  const blocks = readFileSync(join(ROOT, 'docs', 'mcp.md'), 'utf8').split('```');
  const block = blocks.find((each) => each.startsWith('sh\n') && each.includes(line));
  if (block === undefined) throw new Error(`docs/mcp.md has no ${line}`);
  return block.split('\n').slice(1, -1);
}

const shell = (line: string, more: Readonly<Record<string, string>> = {}) =>
  runOk('sh', ['-c', line.replace('./bin/svc', SVC)], {
    cwd: person,
    env: { HOME: person, SVC_HOME: svc.home, ...more },
  });

const toolNames = async () => {
  const args = [`SVC_HOME=${svc.home}`, `HOME=${person}`, SVC, 'mcp', 'gateway'];
  client = await earlierClient({ kind: 'stdio', command: 'env', args });
  const names = (await client.listTools()).map(({ name }) => name);
  await client.close();
  return names;
};

it('a bundle is unpacked and added as the documents say', async () => {
  const manifest = { server: { type: 'node', entry_point: 'server/index.js', mcp_config: { command: 'node' } } };
  const bundle = zipOf({ 'manifest.json': JSON.stringify(manifest), 'server/index.js': PROGRAM });
  const server = createServer((_, response) => response.end(bundle));
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const SHA256 = createHash('sha256').update(bundle).digest('hex');
  try {
    const lines = documented('files.mcpb');
    const outputs: string[] = [];
    for (const line of lines) {
      outputs.push((await shell(line.replace('https://downloads.example.com', origin), { SHA256 })).stdout);
    }
    expect(outputs.join('')).toContain('"mcp_config"');
    expect(await toolNames()).toContain('files__greet');
    await expect(shell(lines[1] ?? '', { SHA256: 'a'.repeat(64) })).rejects.toThrow(/sha256sum|FAILED/);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

it('a server that listens is added by its address', async () => {
  const port = await freePort();
  listening = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port) },
    cwd: dirname(EVERYTHING),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  listening.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await waitFor('the server to listen', () => /listening/i.test(said));
  for (const line of documented('--url http://127.0.0.1:3001')) await shell(line.replace('3001', String(port)));
  expect(await toolNames()).toContain('tickets__echo');
});
