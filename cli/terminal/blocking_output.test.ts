import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blockingOutput } from './blocking_output.ts';

const MODULE = new URL('blocking_output.ts', import.meta.url).href;
/** More than a pipe holds. */
const LONG = 300_000;

test('writes everything, in order', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-output-'));
  try {
    const descriptor = openSync(join(folder, 'out'), 'w');
    const output = blockingOutput(descriptor);
    output.write('a');
    output.end('b'.repeat(LONG));
    await once(output, 'finish');
    closeSync(descriptor);
    expect(readFileSync(join(folder, 'out'), 'utf8')).toBe(`a${'b'.repeat(LONG)}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('waits for the reader of a pipe that does not wait itself', async () => {
  // Node opens its own stdout, so that the pipe no longer waits.
  const script = `process.stdout; const { blockingOutput } = await import(${JSON.stringify(MODULE)}); blockingOutput(1).end('b'.repeat(${LONG}));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let length = 0;
  child.stdout.on('data', (chunk: Buffer) => (length += chunk.length));
  await once(child, 'close');
  expect(length).toBe(LONG);
});

test('reports a descriptor that cannot be written', async () => {
  const descriptor = openSync('/dev/null', 'r');
  const output = blockingOutput(descriptor);
  output.write('a');
  const [error] = await once(output, 'error');
  closeSync(descriptor);
  expect(error).toMatchObject({ code: 'EBADF' });
});
