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
  expect(ring.findLastLine()).toBe('token: ************!');
});

test("uses npm's reason for the message, not the path of its log", () => {
  const ring = new StderrRing();
  ring.write(bytes('npm error code E404\nnpm error 404 Not Found: @acme/files@1.2.3\n'));
  ring.write(bytes('npm error A complete log of this run can be found in: /home/x/.npm/_logs/1-debug-0.log\n\n'));
  expect(ring.findLastLine()).toBe('npm error 404 Not Found: @acme/files@1.2.3');
  const alone = new StderrRing();
  alone.write(bytes('npm ERR! A complete log of this run can be found in: /x\n'));
  expect(alone.findLastLine()).toContain('A complete log');
});

test('removes control characters', () => {
  const ring = new StderrRing();
  ring.write(bytes('a\u001B[2Jb\r\nc\u202Ed\te\n\n'));
  expect(ring.text()).toBe('a[2Jb\ncd\te\n\n');
  expect(ring.findLastLine()).toBe('cd\te');
  expect(new StderrRing().findLastLine()).toBeNull();
});
