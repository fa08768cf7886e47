import { expect, it } from 'vitest';
import { ok } from '../../shared/model/result.ts';
import { engineFinding } from './engine_finding.ts';

const ENGINE = { endpoint: 'unix:///run/docker.sock', kernelRelease: () => Promise.resolve(ok('6.1.0')) };
const MACHINE = { kernelRelease: '6.1.0', rightsAt: () => 'root' as const };

it.each([
  ['root', /sidecar, which runs as root/],
  ['rootless', /rootless engine/],
  ['none', /companion container, without root/],
] as const)('says that containers can be started, and who seals them: %s', async (rights, sealed) => {
  expect(await engineFinding(ok(ENGINE), { ...MACHINE, rightsAt: () => rights })).toMatchObject({
    level: 'ok',
    text: expect.stringMatching(sealed),
  });
});

it('warns of an engine in a virtual machine', async () => {
  expect(await engineFinding(ok(ENGINE), { ...MACHINE, kernelRelease: '25.1.0' })).toMatchObject({
    level: 'warning',
    fix: expect.stringContaining('--sandbox'),
  });
});

it('says what is missing', async () => {
  const error = { reason: 'engine_missing', message: 'docker is not installed', fixes: ['Install it.'] } as const;
  expect(await engineFinding({ ok: false, error }, MACHINE)).toMatchObject({ level: 'warning', fix: 'Install it.' });
});
