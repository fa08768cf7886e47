import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient, type Transaction } from '@libsql/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcess, newMasterKey, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { ITEMS_SPEC, itemsSpec } from '../../../e2e/runtimes/connector_samples.ts';
import { SECRET_FOR_A_NEWER_SIDECAR } from '../../../shared/model/request_limits.ts';
import { SET_FOR_A_NEWER_SIDECAR } from '../../../shared/model/region_set.ts';
import {
  SNAPSHOT_KNOWS_ALSO_HEADER,
  SNAPSHOT_KNOWS_BYTE_LIMITS,
  SNAPSHOT_KNOWS_HEADER,
  SNAPSHOT_KNOWS_INACTIVE,
  SNAPSHOT_KNOWS_OTHER_PORTS,
  SNAPSHOT_KNOWS_REGION_SETS,
  SNAPSHOT_TYP,
  snapshotPayload,
} from '../../../shared/wire/channel.ts';
import { openDatabase } from '../../store/database.ts';

let directory = '';
let client: Client;
let other: Client;
let control: InProcess;
let sidecar: TestSidecar;
let isWriterAtWork = false;
let changes = 0;

/** Another program: it deletes a binding, which makes a new policy version. */
async function changePolicy(): Promise<void> {
  if (!isWriterAtWork) return;
  const last = '(SELECT max(id) FROM host_bindings)';
  const bumped = 'UPDATE users SET policy_version = policy_version + 1';
  const written = await other.batch([`DELETE FROM host_bindings WHERE id = ${last}`, bumped], 'write');
  changes += written[0]?.rowsAffected ?? 0;
}

/** The same, with a policy change before each read. */
function disturbReads<T extends Client | Transaction>(real: T): T {
  return new Proxy(real, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'transaction') {
        return async () => disturbReads(await client.transaction('read'));
      }
      if (name !== 'execute') return value.bind(target);
      return async (...args: unknown[]) => {
        await changePolicy();
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-snapshot-'));
  const url = `file:${join(directory, 'control.db')}`;
  client = createClient({ url, timeout: 5_000 });
  await client.execute('PRAGMA journal_mode = WAL');
  other = createClient({ url, timeout: 5_000 });
  [isWriterAtWork, changes] = [false, 0];
  control = await startInProcess({ database: openDatabase(disturbReads(client)), masterKey: newMasterKey() });
  sidecar = await control.enrolSidecar();
});
afterEach(async () => {
  await control.stop();
  client.close();
  other.close();
  await rm(directory, { recursive: true });
});

const BINDINGS = 40;

async function snapshot(headers: Readonly<Record<string, string>> = {}) {
  const reply = await sidecar.call('GET', '/v1/sidecar/snapshot', { headers });
  return sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
}

test('a snapshot contains the bindings of its version, even if the policy changes before each read', async () => {
  for (let number = 0; number < BINDINGS; number += 1) {
    const binding = {
      host: `h${number}.test`,
      scheme: 'bearer',
      credential_ref: 'vault://user/demo',
      owner: 'personal',
    };
    await control.asUser('POST', '/v1/host-bindings', binding);
  }
  const before = await snapshot();
  isWriterAtWork = true;
  const during = await snapshot();
  isWriterAtWork = false;
  expect(changes).toBeGreaterThan(3);
  expect(before.host_bindings).toHaveLength(BINDINGS);
  expect(during.version).toBeGreaterThan(before.version);
  expect(BINDINGS - during.host_bindings.length).toBe(during.version - before.version);
});

test('hosts with a port are for sidecars that know them; an earlier one would refuse the whole snapshot', async () => {
  const binding = { scheme: 'bearer', credential_ref: 'vault://user/demo' };
  for (const host of ['a.test', 'A.test:8443', '*.a.test:8443', '*.a.test']) {
    expect((await control.asUser('POST', '/v1/host-bindings', { ...binding, host })).status).toBe(201);
  }
  const ported = itemsSpec('1.0.0', {
    connector: { ...ITEMS_SPEC.connector, fqn: 'acme/ported' },
    hosts: ['a.test:8443'],
  });
  for (const spec of [ITEMS_SPEC, ported]) {
    expect((await control.asUser('POST', '/v1/connectors', spec)).status).toBe(201);
  }
  const knows = { [SNAPSHOT_KNOWS_HEADER]: SNAPSHOT_KNOWS_INACTIVE };
  const hostsOf = ({ host_bindings: bindings }: Awaited<ReturnType<typeof snapshot>>) =>
    bindings.map(({ host }) => host);
  const earlier = await snapshot(knows);
  expect(hostsOf(earlier).toSorted()).toEqual(['*.a.test', 'a.test']);
  expect(earlier.inactive_connectors).toHaveLength(1);
  for (const words of [SNAPSHOT_KNOWS_OTHER_PORTS, `more, ${SNAPSHOT_KNOWS_OTHER_PORTS}`]) {
    const now = await snapshot({ ...knows, [SNAPSHOT_KNOWS_ALSO_HEADER]: words });
    expect(hostsOf(now).toSorted()).toEqual(['*.a.test', '*.a.test:8443', 'a.test', 'a.test:8443']);
    expect(now.inactive_connectors).toHaveLength(2);
  }
});

test('a set of regions is for sidecars that know it; an earlier one keeps the binding, with a region that no service has', async () => {
  const binding = { scheme: 'sigv4-resign', access_key_id: 'AKID', service: 's3', credential_ref: 'vault://user/aws' };
  for (const [host, region] of [
    ['one.test', 'eu-central-1'],
    ['set.test', 'us-east-1,eu-*'],
  ]) {
    expect((await control.asUser('POST', '/v1/host-bindings', { ...binding, host, region })).status).toBe(201);
  }
  const one = 'one.test: eu-central-1';
  expect(await regionsFor(SNAPSHOT_KNOWS_OTHER_PORTS)).toEqual([one, `set.test: ${SET_FOR_A_NEWER_SIDECAR}`]);
  expect(await regionsFor(SNAPSHOT_KNOWS_REGION_SETS)).toEqual([one, 'set.test: us-east-1,eu-*']);
  expect(SET_FOR_A_NEWER_SIDECAR).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
});

test('a limit of bytes is for sidecars that know it; an earlier one keeps the binding, without its secret', async () => {
  const binding = { scheme: 'bearer', credential_ref: 'vault://user/demo' };
  for (const [host, limits] of [
    ['free.test', { requests_per_day: 5 }],
    ['limited.test', { bytes_per_day: 500 }],
  ] as const) {
    expect((await control.asUser('POST', '/v1/host-bindings', { ...binding, host, ...limits })).status).toBe(201);
  }
  const unreadable = [`vault://${SECRET_FOR_A_NEWER_SIDECAR}`, undefined];
  const stored = await control.asUser('POST', '/v1/secrets', { path: SECRET_FOR_A_NEWER_SIDECAR, value: 'x' });
  expect(stored.status).toBe(400);
  const earlier = await bindingsFor(SNAPSHOT_KNOWS_REGION_SETS);
  expect([earlier.get('free.test'), earlier.get('limited.test')]).toEqual([
    ['vault://user/demo', undefined],
    unreadable,
  ]);
  expect((await bindingsFor(SNAPSHOT_KNOWS_BYTE_LIMITS)).get('limited.test')).toEqual(['vault://user/demo', 500]);
});

async function bindingsFor(words: string) {
  const { host_bindings: bindings } = await snapshot({ [SNAPSHOT_KNOWS_ALSO_HEADER]: words });
  return new Map(bindings.map(({ host, credential_ref: ref, bytes_per_day: bytes }) => [host, [ref, bytes]]));
}

async function regionsFor(words: string): Promise<readonly string[]> {
  const { host_bindings: bindings } = await snapshot({ [SNAPSHOT_KNOWS_ALSO_HEADER]: words });
  return bindings.map(({ host, region }) => `${host}: ${region}`).toSorted();
}
