import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startMarketplace } from '../../e2e/marketplace/marketplace_world.ts';
import type { RegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { addUser, type InProcess, ORIGIN } from '../../e2e/runtimes/in_process.ts';
import { marketplaceQuery } from '../../shared/wire/marketplace.ts';
import { createApp } from '../app.ts';
import { fileAssets } from '../entries/file_assets.ts';
import { browse } from './browse.ts';
import { install } from './install.ts';

let registry: RegistryServer;
let control: InProcess;
beforeAll(async () => {
  ({ registry, control } = await startMarketplace(20));
});
afterAll(async () => {
  await control.stop();
  await registry.stop();
});

const PATH = '/v1/marketplace/servers?limit=1';
/** The same control plane as if it were hosted, at a fixed time. */
function hostedContext(address: string | null) {
  const { clock } = control.context;
  const now = clock.now();
  const still = { now: () => now, sleep: clock.sleep.bind(clock) };
  const app = createApp({
    context: () => ({ ...control.context, clock: still, local: null }),
    assets: fileAssets(),
    log: () => undefined,
    clientAddress: () => address,
  });
  return async () => (await app.fetch(new Request(ORIGIN + PATH))).status;
}

describe('a caller who is not signed in', () => {
  test('is limited by address on a hosted control plane, and not on their own machine', async () => {
    const look = hostedContext('203.0.113.7');
    const answers: number[] = [];
    for (let index = 0; index < 121; index += 1) answers.push(await look());
    expect([answers.filter((status) => status === 200).length, answers.at(-1)]).toEqual([120, 429]);
    expect(await hostedContext('203.0.113.8')()).toBe(200);
    expect((await control.send(PATH)).status).toBe(200);
  });

  test('is told if the given credentials are invalid', async () => {
    const headers = { authorization: 'Bearer svc_pat_nonsense' };
    expect((await control.send(PATH, { headers })).status).toBe(401);
    expect((await control.send(PATH, { headers: { cookie: 'svc_session=over' } })).status).toBe(200);
  });
});

test('does not see what anybody has installed', async () => {
  const { name } = registry.entry(3).server;
  const [one, other] = [await addUser(control.context, null), await addUser(control.context, null)];
  await install(control.context, one, name, {});
  const query = marketplaceQuery.parse({ q: name });
  const findInstalled = async (caller: typeof one | null) => {
    const page = await browse(control.context, caller, query);
    return page.ok ? page.value.items[0]?.installed : null;
  };
  expect([await findInstalled(one), await findInstalled(other), await findInstalled(null)]).toEqual([
    true,
    false,
    false,
  ]);
});
