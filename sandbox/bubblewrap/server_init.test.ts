import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../e2e/support/free_port.ts';

const INIT = fileURLToPath(new URL('server_init.cjs', import.meta.url));

let folder: string;
let socket: string;
let proxy: Server;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-server-init-'));
  socket = join(folder, 'proxy.sock');
  proxy = createServer((connection) => connection.end('from the proxy'));
  await new Promise<void>((resolve) => proxy.listen(socket, resolve));
});
afterEach(async () => {
  await new Promise((resolve) => proxy.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the first program of a server's sandbox without one. */
async function start(...command: readonly string[]): Promise<{ child: ChildProcessWithoutNullStreams; port: number }> {
  const port = await freePort();
  return { child: spawn(process.execPath, [INIT, String(port), socket, ...command]), port };
}

const codeOf = async (child: ChildProcessWithoutNullStreams): Promise<unknown> => (await once(child, 'exit'))[0];
const fetchAt = (port: number): Promise<string> => text(connect({ port, host: '127.0.0.1' }));

describe('the first program of a server’s sandbox', () => {
  test('carries to the proxy before the server runs, which has the three streams', async () => {
    const { child, port } = await start('/bin/sh', '-c', 'read -r line; echo "out $line"; echo err >&2; exit 7');
    const [output, errors] = [text(child.stdout), text(child.stderr)];
    child.stdin.write('in\n');
    expect([await codeOf(child), await output, await errors]).toEqual([7, 'out in\n', 'err\n']);
    const running = await start('/bin/sh', '-c', 'echo runs; read -r _');
    await once(running.child.stdout, 'data');
    expect([await fetchAt(running.port), port === running.port]).toEqual(['from the proxy', false]);
    running.child.stdin.end();
    await codeOf(running.child);
  });

  test.each([
    [['/nonexistent/server'], 127, 'not found in the sandbox'],
    [['/dev/null'], 126, 'EACCES'],
  ])('says that %j cannot be started', async (command, code, why) => {
    const { child } = await start(...command);
    const said = text(child.stderr);
    expect([await codeOf(child), await said]).toEqual([code, expect.stringContaining(why)]);
  });

  test('leaves a signal to the server, and ends as that does', async () => {
    const { child } = await start('/bin/sh', '-c', 'trap "exit 5" TERM; echo runs; while :; do sleep 0.05; done');
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    const [shell] = (await text(spawn('pgrep', ['-P', String(child.pid)]).stdout)).trim().split('\n');
    process.kill(Number(shell), 'SIGTERM');
    expect(await codeOf(child)).toBe(5);
  });

  test('ends once its session has ended, and with it the server', async () => {
    const { child, port } = await start('/bin/sh', '-c', 'echo runs; read -r _');
    const said = text(child.stderr);
    await once(child.stdout, 'data');
    await new Promise((resolve) => proxy.close(resolve));
    await expect(fetchAt(port)).rejects.toThrow('ECONNRESET');
    expect([await codeOf(child), await said]).toEqual([1, "svc: the server's session has ended\n"]);
    child.stdin.end();
  });
});
