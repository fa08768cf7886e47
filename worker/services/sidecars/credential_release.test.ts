import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { auditEventsPage } from '../../../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../../../shared/wire/channel.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { hostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { ProgramLifetime } from '../../kernel/lifetime.ts';

let control: InProcess;
let sidecar: TestSidecar;
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

type Ref = { owner: 'personal' | 'enterprise'; path: string };
const DEMO: Ref = { owner: 'personal', path: 'user/demo' };

const store = (path: string, value: string, owner = 'personal') =>
  control.asUser('POST', '/v1/secrets', { path, value, owner });
const bind = (host: string, path: string, owner = 'personal') =>
  control.asUser('POST', '/v1/host-bindings', { host, scheme: 'bearer', credential_ref: `vault://${path}`, owner });

async function release(...credentials: Ref[]) {
  const body = { request_id: crypto.randomUUID(), credentials };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}
async function snapshot() {
  const reply = await sidecar.call('GET', '/v1/sidecar/snapshot');
  return sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
}

describe('a credential', () => {
  test('is released if a binding of the snapshot refers to it, and each release is audited', async () => {
    await store('user/demo', 'the value');
    await bind('a.test', 'user/demo');
    const { credentials } = await release(DEMO, DEMO);
    expect(credentials).toHaveLength(1);
    expect(await sidecar.unseal(credentials[0]!.sealed)).toEqual({ value: 'the value' });
    await release(DEMO);
    const listed = await (await control.asUser('GET', '/v1/audit-events?type=control.credential.released')).json();
    const events = auditEventsPage.parse(listed).items;
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({
      sidecar_id: null,
      actor: sidecar.enrolled.sidecar_id,
      data: { 'svc.control.credential_ref': 'vault://user/demo', 'svc.control.owner': 'personal' },
    });
  });

  test('is reported missing if no binding refers to it or it is not stored', async () => {
    await store('user/demo', 'the value');
    await bind('b.test', 'user/none');
    const none: Ref = { owner: 'personal', path: 'user/none' };
    expect(await release(DEMO, none)).toMatchObject({ credentials: [], missing: [DEMO, none] });
    expect((await snapshot()).credentials).toEqual([]);
  });

  test('is looked up only in the namespace of its binding’s owner', async () => {
    await store('shared/key', 'of the enterprise', 'enterprise');
    await bind('a.test', 'shared/key', 'personal');
    const enterprise: Ref = { owner: 'enterprise', path: 'shared/key' };
    expect((await release({ ...enterprise, owner: 'personal' }, enterprise)).credentials).toEqual([]);
    await bind('a.test', 'shared/key', 'enterprise');
    expect((await release(enterprise)).credentials).toMatchObject([{ owner: 'enterprise' }]);
  });

  test('gets another version when its value changes, also if it was deleted in between', async () => {
    await store('user/demo', 'one');
    const bound = await parseReply(hostBindingRecord, bind('a.test', 'user/demo'));
    const versions = [(await snapshot()).credentials[0]?.version];
    await store('user/demo', 'two');
    versions.push((await snapshot()).credentials[0]?.version, (await release(DEMO)).credentials[0]?.version);
    await control.asUser('DELETE', `/v1/host-bindings/${bound.id}`);
    await control.asUser('DELETE', '/v1/secrets/user/demo');
    await store('user/demo', 'three');
    await bind('a.test', 'user/demo');
    versions.push((await snapshot()).credentials[0]?.version);
    expect(versions[1]).toBe(versions[2]);
    expect(new Set(versions).size).toBe(3);
  });

  test('that is damaged does not block the others of the call, and is logged', async () => {
    await control.stop();
    const failed: string[] = [];
    control = await startInProcess({ lifetime: new ProgramLifetime((what) => failed.push(what)) });
    sidecar = await control.enrolSidecar();
    for (const path of ['user/demo', 'user/other']) {
      await store(path, `the value of ${path}`);
      await bind(`${path.slice(5)}.test`, path);
    }
    await control.context.database.client.execute("UPDATE secrets SET sealed = 'x.y.z' WHERE path = 'user/demo'");
    const other: Ref = { owner: 'personal', path: 'user/other' };
    expect(await release(DEMO, other)).toMatchObject({
      credentials: [other],
      missing: [],
      unavailable: [{ ...DEMO, reason: 'credential_unavailable' }],
    });
    expect(failed).toEqual(['the release of the personal vault://user/demo (vault_entry_damaged)']);
  });

  test('is not blamed for a database failure', async () => {
    await store('user/demo', 'the value');
    await bind('a.test', 'user/demo');
    await control.context.database.client.execute('ALTER TABLE secrets RENAME TO elsewhere');
    const body = { request_id: crypto.randomUUID(), credentials: [DEMO] };
    expect((await sidecar.call('POST', '/v1/sidecar/credentials', { body })).status).toBe(503);
  });

  test('can be encrypted to a P-256 key too', async () => {
    await store('user/demo', 'the value');
    await bind('a.test', 'user/demo');
    sidecar = await TestSidecar.make(control.send, 'P-256', () => control.clock.now());
    await sidecar.enrol(control.localKey);
    expect(await sidecar.unseal((await release(DEMO)).credentials[0]!.sealed)).toEqual({ value: 'the value' });
  });
});

describe('a snapshot', () => {
  test('is waited for until it changes, with one database poll per second', async () => {
    const begun = control.clock.now();
    const waiting = sidecar.call('GET', '/v1/sidecar/snapshot?wait=25', { headers: { 'if-none-match': '"0"' } });
    expect((await waiting).status).toBe(304);
    expect(control.clock.now() - begun).toBe(25_000);
  });

  test('is refused if the sidecar is revoked while it waits', async () => {
    const { clock } = control;
    const sleep = clock.sleep.bind(clock);
    clock.sleep = async (milliseconds) => {
      clock.sleep = sleep;
      await control.asUser('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`);
      await sleep(milliseconds);
    };
    const reply = await sidecar.call('GET', '/v1/sidecar/snapshot?wait=25', { headers: { 'if-none-match': '"0"' } });
    expect([reply.status, (await parseReply(errorBody, reply)).error.code]).toEqual([401, 'sidecar_revoked']);
  });
});

describe('enrolment', () => {
  test.each([
    [
      'a signing key with a private half',
      { signing_key: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43), d: 'A'.repeat(43) } },
    ],
    ['a receiving key of low order', { receiving_key: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } }],
    [
      'a receiving key off its curve',
      { receiving_key: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) } },
    ],
    ['no name', { name: ' ' }],
  ])('refuses %s', async (_, change) => {
    const body = { name: 'laptop', ...(await sidecar.publicKeys()), ...change };
    const reply = await control.asUser('POST', '/v1/sidecars', body);
    expect([reply.status, (await parseReply(errorBody, reply)).error.code]).toEqual([400, 'invalid_input']);
  });
});
