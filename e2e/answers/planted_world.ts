import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bindMintedClouds, CLOUD_HOSTS } from '../support/cloud_sdks.ts';
import { MintingProviders } from '../support/minting_providers.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import type { Svc } from '../support/svc.ts';
import { startWorld, type World } from '../support/world.ts';
import { type Asker, localAsker } from './asker.ts';
import { Planter, startPlantedRegistry, STORED } from './planter.ts';

const GITHUB = 'api.github.com';
const BORROWED = 'borrowed.example.test';
const HOSTS = [STORED, BORROWED, GITHUB, ...Object.values(CLOUD_HOSTS)];

/** Values that svc holds, and one text that it shows. */
export interface PlantedWorld {
  readonly world: World;
  readonly asker: Asker;
  readonly planter: Planter;
  /** What svc stores, mints, borrows or has shown once. */
  readonly secrets: readonly string[];
  stop(): Promise<void>;
}

/** svc with one of each thing that has an answer of its own, and with a value wherever one can be stored, minted or borrowed. */
export async function startPlantedWorld(): Promise<PlantedWorld> {
  const registry = await startPlantedRegistry();
  const providers = await MintingProviders.start();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-answers-')));
  const world = await startWorld(HOSTS, { env: { SVC_REGISTRY_URL: registry.url } });
  const { svc } = world;
  const stop = async (): Promise<void> => {
    await world.stop();
    await providers.close();
    await registry.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const asker = await localAsker(svc);
  const planter = new Planter(svc, asker.sidecar);
  await planter.plant();
  await providers.addSources(svc);
  await bindMintedClouds(svc, world.upstream);
  await svc.binding({ host: GITHUB, scheme: 'bearer', credential_ref: 'vault://ci/github' });
  const borrowed = await borrow(svc, folder, planter.shown);
  for (const host of HOSTS) await send(svc, host);
  const secrets = [borrowed, ...planter.secrets, ...providers.keys, ...providers.values];
  return { world, asker, planter, secrets, stop };
}

/** A value that a program gives. */
async function borrow(svc: Svc, folder: string, description: string): Promise<string> {
  const value = plantSecret();
  const program = join(folder, 'provider');
  writeFileSync(join(folder, 'value'), value);
  writeFileSync(program, `#!/bin/sh\ncat ${folder}/value\n`);
  chmodSync(program, 0o700);
  const consent = ['user/borrowed', '--host', BORROWED, '--scheme', 'bearer', '--yes', '--', program];
  await svc.ok(['secret', 'borrow', 'add', ...consent]);
  const binding = { host: BORROWED, scheme: 'bearer', effect: 'read', description };
  await svc.binding({ ...binding, credential_ref: 'vault://user/borrowed' });
  return value;
}

/** A request that has the credential of its binding; throws if it is not answered with 200. */
async function send(svc: Svc, host: string): Promise<void> {
  const session = await svc.session();
  const client = await connectThroughProxy(session, host);
  const { status, body } = await client.exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  client.close();
  await session.end();
  if (status !== 200) throw new Error(`${host} was answered with ${status}: ${body.data.toString()}`);
}
