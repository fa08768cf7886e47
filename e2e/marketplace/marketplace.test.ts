import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ControlPlaneUnderTest,
  startLibsqlServer,
  startNodeAt,
  startOnDeno,
  startOnWorkerd,
} from '../runtimes/programs.ts';
import { describeMarketplace } from './marketplace_suite.ts';

type Start = (database: { readonly url: string }, settings: Record<string, string>) => Promise<ControlPlaneUnderTest>;

/** A runtime with its own libSQL server. */
const onServer = (start: Start) => async (registryUrl: string) => {
  const database = await startLibsqlServer();
  const control = await start(database, { SVC_REGISTRY_URL: registryUrl });
  const stop = async () => {
    await control.stop();
    await database.stop();
  };
  return { ...control, stop };
};

describeMarketplace('Node with the embedded database', async (registryUrl) => {
  const home = await mkdtemp(join(tmpdir(), 'svc-home-'));
  const control = await startNodeAt(home, { SVC_REGISTRY_URL: registryUrl });
  const stop = async () => {
    await control.stop();
    await rm(home, { recursive: true, force: true });
  };
  return { ...control, stop };
});
describeMarketplace('Deno with a libSQL server', onServer(startOnDeno));
describeMarketplace('workerd with a libSQL server', onServer(startOnWorkerd));
