import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IS_FULL, sampleOf } from '../support/full_counts.ts';
import { SQUID, TINYPROXY } from '../support/real_proxies.ts';
import { CLIENTS, useClient } from './clients.ts';
import { BEHIND_A_PROXY } from './table.ts';
import { canRunProxies } from './upstream_proxy.ts';
import { ITEMS, type MatrixWorld, startMatrixWorld } from './world.ts';

// The clients of matrix.test.ts where svc itself reaches the world through a proxy with a password: a sample through one proxy (the
// other one is in company_proxy.test.ts), or all of them through each.

const PROXIES = sampleOf([TINYPROXY, SQUID], 1);
const SAMPLE = CLIENTS.filter(({ name }) => BEHIND_A_PROXY.includes(name));

describe.skipIf(!canRunProxies()).each(PROXIES)('client matrix through $name', (proxy) => {
  const tried = IS_FULL ? CLIENTS : SAMPLE;
  let world: MatrixWorld;
  beforeAll(async () => {
    world = await startMatrixWorld({ proxy });
  });
  afterAll(() => world.stop());

  it.for(tried)(
    '$name works with a credential that it does not hold, or fails as its row says',
    async (client, { skip }) => {
      expect((await useClient(world, client, skip)) > 0).toBe(client.works);
    },
  );

  it('reaches nothing without the proxy', async () => {
    await world.stopProxy();
    const done = await world.tryRun(['curl', '-sS', ITEMS]);
    expect(done.stdout).toContain('upstream_proxy_failed');
    expect(world.services.items.requests).toEqual([]);
  });
});
