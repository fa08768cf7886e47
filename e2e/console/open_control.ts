import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { type Database, openDatabase } from '../../worker/store/database.ts';
import { type ControlPlaneUnderTest, startLibsqlServer, startNodeAt, startOnWorkerd } from '../runtimes/programs.ts';

/** A control plane in local mode whose database a test can change directly, for states that no API call creates. */
export interface OpenControl extends ControlPlaneUnderTest {
  readonly database: Database;
}

/** Node on the embedded database. */
export async function openOnNode(settings: Record<string, string> = {}): Promise<OpenControl> {
  const home = await mkdtemp(join(tmpdir(), 'svc-home-'));
  const control = await startNodeAt(home, settings);
  const url = `file:${join(home, 'control.db')}`;
  return withDatabase(control, url, () => rm(home, { recursive: true, force: true }));
}

/** workerd on a libSQL server. */
export async function openOnWorkerd(settings: Record<string, string> = {}): Promise<OpenControl> {
  const server = await startLibsqlServer();
  return withDatabase(await startOnWorkerd(server, settings), server.url, () => server.stop());
}

function withDatabase(control: ControlPlaneUnderTest, url: string, tidy: () => Promise<void>): OpenControl {
  const client = createClient({ url, timeout: 10_000 });
  const stop = async () => {
    client.close();
    await control.stop();
    await tidy();
  };
  return { ...control, database: openDatabase(client), stop };
}
