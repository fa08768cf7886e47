import { expect, test } from 'vitest';
import { SecretMask } from './secret_mask.ts';
import { StderrRing } from './stderr_ring.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

test('keeps the last 64 KiB', () => {
  const ring = new StderrRing();
  for (let line = 0; line < 20_000; line += 1) ring.write(bytes(`line ${line}\n`));
  const text = ring.text();
  expect(text.length).toBe(64 * 1024);
  expect(text.endsWith('line 19999\n')).toBe(true);
  ring.write(bytes('y'.repeat(200_000)));
  expect(ring.text()).toBe('y'.repeat(64 * 1024));
});

test('masks a secret that arrives in pieces before storing it', () => {
  const ring = new StderrRing();
  ring.maskWith(new SecretMask(['S3CR3T-TOKEN']));
  for (const character of 'token: S3CR3T-TOKEN!\n') ring.write(bytes(character));
  expect(ring.text()).toBe('token: ************!\n');
  expect(ring.findLastLines()).toEqual(['token: ************!']);
});

test("uses npm's reason for the message, not the path of its log", () => {
  const ring = new StderrRing();
  ring.write(bytes('npm error code E404\nnpm error 404 Not Found: @acme/files@1.2.3\n'));
  ring.write(bytes('npm error A complete log of this run can be found in: /home/x/.npm/_logs/1-debug-0.log\n\n'));
  expect(ring.findLastLines()).toEqual(['npm error code E404', 'npm error 404 Not Found: @acme/files@1.2.3']);
  const alone = new StderrRing();
  alone.write(bytes('npm ERR! A complete log of this run can be found in: /x\n'));
  expect(alone.findLastLines()).toEqual([expect.stringContaining('A complete log')]);
});

test('removes control characters', () => {
  const ring = new StderrRing();
  ring.write(bytes('a\u001B[2Jb\r\nc\u202Ed\te\n\n'));
  expect(ring.text()).toBe('a[2Jb\ncd\te\n\n');
  expect(ring.findLastLines()).toEqual(['a[2Jb', 'cd\te']);
  expect(new StderrRing().findLastLines()).toEqual([]);
});

test("uses Node's error for the message, not its stack and version", () => {
  const ring = new StderrRing();
  const stack = '    at Module._load (node:internal/modules/cjs/loader:1:1)\n';
  ring.write(
    bytes(`/x/cli.js:1\nthrow new Error('no port');\n^\n\nError: no port\n${stack.repeat(8)}\nNode.js v24.1.0\n`),
  );
  expect(ring.findLastLines()).toEqual(['/x/cli.js:1', "throw new Error('no port');", 'Error: no port']);
});

test('cuts long lines and many of them for the message', () => {
  const ring = new StderrRing();
  for (let line = 0; line < 100; line += 1) ring.write(bytes(`${line} ${'x'.repeat(10_000)}\n`));
  const lines = ring.findLastLines();
  expect(lines.map((line) => line.split(' ')[0])).toEqual(['96', '97', '98', '99']);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(200);
});
