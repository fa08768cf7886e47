import { expect, it } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import { engineFinding } from './engine_finding.ts';

const HOST = { kernelRelease: '6.1.0', operatingSystem: null };
const ENGINE = { endpoint: 'unix:///run/docker.sock', host: () => Promise.resolve(ok(HOST)) };
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

it('says what an engine in a virtual machine needs', async () => {
  expect(await engineFinding(ok(ENGINE), { ...MACHINE, kernelRelease: '25.1.0' })).toMatchObject({
    level: 'ok',
    text: expect.stringMatching(/companion container in its virtual machine.*Node 20/),
  });
});

it('does not guess where containers run', async () => {
  const error = { reason: 'engine_timeout', message: 'no answer in time', fixes: [] } as const;
  const silent = { ...ENGINE, host: () => Promise.resolve(err(error)) };
  expect(await engineFinding(ok(silent), MACHINE)).toMatchObject({
    level: 'warning',
    text: expect.stringContaining('no answer in time'),
  });
});

it('says what is missing', async () => {
  const error = { reason: 'engine_missing', message: 'docker is not installed', fixes: ['Install it.'] } as const;
  expect(await engineFinding({ ok: false, error }, MACHINE)).toMatchObject({ level: 'warning', fix: 'Install it.' });
});
