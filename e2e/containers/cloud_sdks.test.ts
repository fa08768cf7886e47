import { chmodSync, cpSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
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
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

const SECRETS = { aws: plantSecret(), google: plantSecret(), azure: plantSecret() };
const packages = await installCloudClients();
let world: ContainerWorld;

describeContainers('the SDKs of clouds in a sealed container', () => {
  beforeAll(async () => {
    world = await startContainerWorld(Object.values(CLOUD_HOSTS));
    await bindClouds(world.svc, world.upstream, SECRETS);
  });
  afterAll(() => world.stop());

  it.skipIf(packages === null)('work with an empty home, and hold placeholders only', async () => {
    // The folder of the packages is for one user only.
    const readable = world.bench.folder('packages');
    cpSync(packages ?? '', readable, { recursive: true });
    chmodSync(readable, 0o755);
    const mounts = [`${CLOUD_PROGRAMS}:/mnt/programs:ro`, `${readable}:/mnt/packages:ro`];
    const script = `${cloudScript('/mnt/programs', '/mnt/packages')}; env >&2`;
    const flags = ['--egress=sealed', ...mounts.flatMap((mount) => ['--mount', mount])];
    const ran = await world.launch(flags, ['sh', '-c', script]);
    expect([ran.stdout, ran.code]).toEqual([CLOUDS_SAID, 0]);
    expect(seenByClouds(world.upstream, SECRETS)).toEqual(expectedByClouds(SECRETS));
    for (const secret of Object.values(SECRETS)) expect(foundIn(ran.stdout + ran.stderr, secret)).toEqual([]);
  });

  it('ask the endpoints of their own container only, with what the real ones ask', async () => {
    const metadata = '$GCE_METADATA_HOST/computeMetadata/v1/instance/service-accounts/default/token';
    const status = `curl -s -o /dev/null -w '%{http_code} '`;
    const script = [
      `${status} http://${metadata}`,
      `${status} -H 'Metadata-Flavor: Google' -H 'X-Forwarded-For: 10.0.0.1' http://${metadata}`,
      `${status} -H 'Metadata-Flavor: Google' http://${metadata}`,
      `${status} "$IDENTITY_ENDPOINT?api-version=2019-08-01&resource=a"`,
      `${status} -H "X-IDENTITY-HEADER: other" "$IDENTITY_ENDPOINT?api-version=2019-08-01&resource=a"`,
      `${status} -H "X-IDENTITY-HEADER: $IDENTITY_HEADER" "$IDENTITY_ENDPOINT?api-version=2019-08-01&resource=a"`,
      `${status} "$AWS_CONTAINER_CREDENTIALS_FULL_URI"`,
      `${status} -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI"`,
    ].join('; ');
    const ran = await world.launch(['--egress=sealed'], ['sh', '-c', script]);
    expect(ran.stdout.trim()).toBe('403 403 200 401 401 200 401 200');
  });
});
