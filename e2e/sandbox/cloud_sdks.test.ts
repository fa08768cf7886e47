import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { awsCli } from '../../tools/system_parts.mjs';
import {
  bindClouds,
  CLOUD_HOSTS,
  CLOUD_PROGRAMS,
  cloudScript,
  CLOUDS_SAID,
  expectedByClouds,
  installCloudClients,
  seenByClouds,
} from '../support/cloud_sdks.ts';
import { foundIn, plantSecret, searchFiles } from '../support/planted_secret.ts';
import { startWorld, type World } from '../support/world.ts';

const PATH = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const bubblewrap = findBubblewrap(machineFacts(PATH));
const packages = await installCloudClients();
const canTry = bubblewrap.ok && probeBubblewrap(bubblewrap.value).ok && awsCli() !== null && packages !== null;
const SECRETS = { aws: plantSecret(), google: plantSecret(), azure: plantSecret() };

describe.skipIf(!canTry)('the SDKs of clouds in svc run --sandbox', () => {
  let world: World;
  let root: string;
  beforeAll(async () => {
    world = await startWorld(Object.values(CLOUD_HOSTS));
    await bindClouds(world.svc, world.upstream, SECRETS);
    root = mkdtempSync(join(tmpdir(), 'svc-e2e-cloud-sdks-'));
    mkdirSync(join(root, 'home', 'project'), { recursive: true });
  });
  afterAll(async () => {
    await world.stop();
    rmSync(root, { recursive: true, force: true });
  });

  it('work with an empty home and no network of their own, and hold placeholders only', async () => {
    const shown = [CLOUD_PROGRAMS, packages ?? ''].flatMap((path) => ['--sandbox-read', path]);
    const script = `${cloudScript(CLOUD_PROGRAMS, packages ?? '')}; env >&2`;
    const home = join(root, 'home');
    const ran = await world.svc.cli(['run', '--sandbox', '--egress=sealed', ...shown, '--', 'sh', '-c', script], {
      cwd: join(home, 'project'),
      env: { HOME: home, PATH: `${join(process.execPath, '..')}:${PATH}` },
    });
    expect([ran.stdout, ran.code]).toEqual([CLOUDS_SAID, 0]);
    expect(seenByClouds(world.upstream, SECRETS)).toEqual(expectedByClouds(SECRETS));
    for (const secret of Object.values(SECRETS)) {
      expect(foundIn(ran.stdout + ran.stderr, secret)).toEqual([]);
      expect(searchFiles(home, secret).holding).toEqual([]);
    }
  });
});
