import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { handOver, openFolder, takeBack } from './hand_over.ts';

let folder: string;
let roots: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-hand-over-'));
  roots = `${folder}.pem`;
  writeFileSync(roots, 'roots');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
  rmSync(roots);
});

const session = (value = 'placeholder') => ({
  sessionId: 'ses_1',
  proxyUrl: 'http://ses_1:token@127.0.0.1:7421',
  caBundlePath: roots,
  sentinels: [{ env: 'API_KEY', value }],
});

describe('a session that is handed over', () => {
  test('is the environment of a program that sees the folder', () => {
    handOver(folder, session());
    const script = `. '${folder}/env.sh'; printf '%s\\n' "$HTTPS_PROXY" "$SSL_CERT_FILE" "$API_KEY"; cat "$SSL_CERT_FILE"`;
    const said = execFileSync('/bin/sh', ['-c', script], { env: {}, encoding: 'utf8' });
    expect(said).toBe(`${session().proxyUrl}\n${folder}/ca.pem\nplaceholder\nroots`);
    const json: Record<string, string> = JSON.parse(readFileSync(join(folder, 'env.json'), 'utf8'));
    expect(json['API_KEY']).toBe('placeholder');
    expect(Object.keys(json)).not.toContain('PATH');
  });

  test.each(["a'b", 'a"b', '$(touch x)', '`touch x`', 'a\nb', '\\', "'; touch x; '"])(
    'quotes %j for a shell',
    (value) => {
      handOver(folder, session(value));
      const said = execFileSync('/bin/sh', ['-c', `. '${folder}/env.sh'; printf %s "$API_KEY"`], {
        cwd: folder,
        env: {},
        encoding: 'utf8',
      });
      expect(said).toBe(value);
      expect(readdirSync(folder).toSorted()).toEqual(['ca.pem', 'env.json', 'env.sh']);
    },
  );

  test('follows no link that somebody has put there', () => {
    const target = `${folder}.target`;
    writeFileSync(target, 'mine');
    for (const name of ['env.sh', 'env.json', 'ca.pem']) symlinkSync(target, join(folder, name));
    handOver(folder, session());
    expect(readFileSync(target, 'utf8')).toBe('mine');
    expect(readFileSync(join(folder, 'env.sh'), 'utf8')).toContain('export HTTPS_PROXY=');
    rmSync(target);
  });

  test('says which folder could not be written', () => {
    expect(() => handOver('/nowhere', session())).toThrow('the session cannot be written into /nowhere');
  });

  test('is taken back at the end', () => {
    handOver(folder, session());
    takeBack(folder);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of a container that was killed is removed before the next one', () => {
    handOver(folder, session());
    writeFileSync(join(folder, 'other'), '');
    openFolder(folder);
    expect(readdirSync(folder)).toEqual(['other']);
  });

  test.each(['/nowhere', '/proc/self/mounts'])('needs a folder, and %s is none', (path) => {
    expect(() => openFolder(path)).toThrow('is not a folder');
  });
});
