import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import type { Installation } from './installation.ts';
import { upgradeSteps } from './upgrade_steps.ts';

const SUM = 'ab'.repeat(32);
const FILES = ['install.sh', 'svc-5.0.0.tgz', 'svc_5.0.0_amd64.deb', 'svc-5.0.0-image.tar.gz'];
const release = {
  from: 'https://downloads.example.com/svc',
  isFolder: false,
  changelog: '',
  checksums: new Map(FILES.map((file) => [file, SUM])),
};
const steps = (installation: Partial<Installation>, more: Partial<typeof release> = {}): readonly string[] =>
  upgradeSteps(
    { way: 'npm', root: '/r', prefix: null, signer: null, ...installation },
    { version: '5.0.0', release: { ...release, ...more }, checksumProgram: 'sha256sum' },
  );

describe('the commands that install a version', () => {
  test.each([
    [
      { way: 'archive', prefix: '/home/ada/.local' },
      `curl -fsSLO https://downloads.example.com/svc/install.sh && echo '${SUM}  install.sh' | sha256sum --check && sh install.sh --from https://downloads.example.com/svc --prefix /home/ada/.local`,
    ],
    [
      { way: 'npm', prefix: '/usr/local' },
      `curl -fsSLO https://downloads.example.com/svc/svc-5.0.0.tgz && echo '${SUM}  svc-5.0.0.tgz' | sha256sum --check && npm install --global --ignore-scripts --prefix /usr/local ./svc-5.0.0.tgz`,
    ],
    [
      { way: 'debian' },
      `curl -fsSLO https://downloads.example.com/svc/svc_5.0.0_amd64.deb && echo '${SUM}  svc_5.0.0_amd64.deb' | sha256sum --check && sudo dpkg --install svc_5.0.0_amd64.deb`,
    ],
    [
      { way: 'image' },
      `curl -fsSLO https://downloads.example.com/svc/svc-5.0.0-image.tar.gz && echo '${SUM}  svc-5.0.0-image.tar.gz' | sha256sum --check && docker build --target control --tag svc-control - < svc-5.0.0-image.tar.gz`,
    ],
    [{ way: 'homebrew' }, 'brew upgrade svc'],
  ] as const)('check the signed checksum before anything runs: %j', (installation, expected) => {
    expect(steps(installation)).toContain(expected);
  });

  test('take a folder, whose name a shell reads as one word', () => {
    const [, install = ''] = steps({ way: 'archive' }, { from: "/tmp/Ada's; touch x", isFolder: true });
    const [go = ''] = install.split(' && ');
    expect(go).toBe(String.raw`cd '/tmp/Ada'\''s; touch x'`);
    expect(execFileSync('sh', ['-c', `set -- ${go}; printf %s "$2"`], { encoding: 'utf8' })).toBe(
      "/tmp/Ada's; touch x",
    );
  });

  test('are not given for a release without the file of this installation', () => {
    expect(() => steps({ way: 'debian' }, { checksums: new Map() })).toThrow('has no svc_5.0.0_amd64.deb');
  });
});
