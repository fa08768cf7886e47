import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseLastWords, startNodeProgram } from './node_program.ts';
import { RotatingLog } from './rotating_log.ts';
import { environmentFor, parsePort, pinsOfControl, requireFreePort } from './up_programs.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-up-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function start(script: string) {
  const file = join(folder, 'program.mjs');
  writeFileSync(file, script);
  const log = new RotatingLog(join(folder, 'program.log'));
  return startNodeProgram({ preloaded: null, file, args: ['--x', 'y'], env: { PATH: process.env['PATH'] }, log });
}

describe('a started program', () => {
  test('reports its address; all other output goes to its log', async () => {
    const handle = start(`
      console.log('warming up');
      console.error(JSON.stringify({ message: process.argv.slice(2).join(' ') }));
      console.log(JSON.stringify({ listening: 'http://127.0.0.1:5123' }));`);
    expect(await handle.ready).toBe('http://127.0.0.1:5123');
    expect(await handle.exited).toEqual({ code: 0, signal: null });
    const log = readFileSync(join(folder, 'program.log'), 'utf8');
    expect(log.split('\n').toSorted()).toEqual(['', 'warming up', '{"message":"--x y"}']);
  });

  test('returns its last log lines if it fails', async () => {
    const handle = start(
      `console.error(JSON.stringify({ level: 'error', message: 'wrong vault key' })); process.exit(3);`,
    );
    expect(await handle.exited).toEqual({ code: 3, signal: null });
    expect(handle.readLastWords()).toEqual(['wrong vault key']);
  });

  test('ends when asked', async () => {
    const handle = start(`console.log('{"listening":"http://127.0.0.1:1"}'); setInterval(() => {}, 1000);`);
    await handle.ready;
    handle.kill('SIGTERM');
    expect(await handle.exited).toEqual({ code: null, signal: 'SIGTERM' });
  });
});

test('the last log lines are their messages, or raw lines', () => {
  const lines = ['{"message":"a"}', '{"msg":"b"}', '', 'Error: c', '    at d', '', 'Node.js v24.1.0'];
  expect(parseLastWords(lines)).toEqual(['a', 'b', 'Error: c']);
  expect(parseLastWords(Array.from({ length: 9 }, (_, index) => `line ${index}`))).toHaveLength(5);
});

test('the control plane gets the addresses for port 443, however it is written, and no others', () => {
  const given = [
    'a.test:127.0.0.1',
    'b.test:443:127.0.0.1:8443',
    'c.test:443:[::1]',
    'd.test:[::1]:8443',
    'e.test:8443:127.0.0.1',
    'http://f.test:127.0.0.1',
  ];
  expect(pinsOfControl(given)).toEqual([
    'a.test:127.0.0.1',
    'b.test:127.0.0.1:8443',
    'c.test:[::1]',
    'd.test:[::1]:8443',
  ]);
});

describe('ports', () => {
  test('that is taken is refused and the flag is named', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    await expect(requireFreePort(port, '--proxy-port')).rejects.toMatchObject({
      message: `port ${port} on 127.0.0.1 is in use by another program`,
      fixes: [expect.stringContaining('--proxy-port')],
    });
    server.close();
    await once(server, 'close');
    await expect(requireFreePort(port, '--proxy-port')).resolves.toBeUndefined();
    await expect(requireFreePort(0, '--proxy-port')).resolves.toBeUndefined();
  });

  test.each(['', '-1', '65536', '80a', '1e3'])('%j is refused', (text) => {
    expect(() => parsePort(text, '--control-port')).toThrow('--control-port is');
  });

  test('zero and the largest number are accepted', () => {
    expect([parsePort('0', 'x'), parsePort('65535', 'x')]).toEqual([0, 65_535]);
  });
});

test('each program gets only its own settings: the sidecar never sees the vault key', () => {
  const env = {
    SVC_VAULT_KEY: 'k',
    SVC_DATABASE_TOKEN: 't',
    SVC_DATABASE_URL: 'u',
    SVC_MAX_HEADERS: '20',
    PATH: '/bin',
  };
  expect(environmentFor(env, 'sidecar')).toEqual({ SVC_MAX_HEADERS: '20', PATH: '/bin' });
  expect(environmentFor(env, 'control')).toEqual({
    SVC_VAULT_KEY: 'k',
    SVC_DATABASE_TOKEN: 't',
    SVC_DATABASE_URL: 'u',
    PATH: '/bin',
  });
});
