import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readInstallation } from './installation.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-installation-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function installed(path: string, text: string | null): string {
  const root = join(folder, path);
  mkdirSync(root, { recursive: true });
  if (text !== null) writeFileSync(join(root, 'release.json'), text);
  return root;
}
const of = (way: string): string => JSON.stringify({ way, signer: 'ssh-ed25519 AAAA' });

describe('how svc was installed', () => {
  test.each([
    ['lib/node_modules/svc', of('npm'), 'npm', ''],
    ['node_modules/svc', of('npm'), 'npm', null],
    ['Cellar/svc/4.0.0/libexec/lib/node_modules/svc', of('npm'), 'homebrew', null],
    ['lib/svc-4.0.0', of('archive'), 'archive', ''],
    ['elsewhere/svc', of('archive'), 'archive', null],
    ['usr/lib/svc', of('debian'), 'debian', null],
    ['opt/svc', of('image'), 'image', null],
    ['lib/node_modules/svc', null, 'npm', ''],
  ])('is known of %s with %s: %s', (path, text, way, prefix) => {
    const found = readInstallation(installed(path, text));
    expect(found).toMatchObject({ way, prefix: prefix === null ? null : join(folder, prefix).replace(/\/$/, '') });
    expect(found.signer).toBe(text === null ? null : 'ssh-ed25519 AAAA');
  });

  test('is a checkout where the sources are', () => {
    const root = installed('checkout', null);
    mkdirSync(join(root, 'cli'));
    writeFileSync(join(root, 'cli/main.ts'), '');
    expect(readInstallation(root)).toMatchObject({ way: 'checkout', signer: null });
  });

  test.each(['', '{', '{"way":"snap","signer":null}', '{"way":"npm"}'])('is not guessed from %j', (text) => {
    expect(() => readInstallation(installed('lib/svc-4.0.0', text))).toThrow('install it again');
  });
});
