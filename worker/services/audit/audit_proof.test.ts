import { compactVerify, decodeJwt, importJWK } from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type HostedUser,
  hostedUser,
  ownerWithMember,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { ChainWalk } from '../../../shared/audit/chain_walk.ts';
import { auditStatement, auditStatementReply } from '../../../shared/wire/audit_heads.ts';
import { newId } from '../../../shared/wire/ids.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { exportEvents } from './audit_file.ts';
import { exportProof } from './audit_proof.ts';

/** More than one page of a chain, and more than the stream makes before anybody reads. */
const EVENTS = 1_203;

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let sidecar: TestSidecar;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(owner.tokens.access_token);
  for (let sent = 0; sent < EVENTS; sent += 401) await send(401);
});
afterEach(() => control.stop());

async function send(count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    id: newId('evt', crypto.getRandomValues(new Uint8Array(16))),
    type: 'sandbox.proxy.passthrough',
    time: '2026-01-01T00:00:00.000Z',
    sidecar_id: null,
    session_id: null,
    actor: 'session',
    data: { 'svc.proxy.upstream.host': 'planted.example.test' },
  }));
  for (let at = 0; at < events.length; at += 100) {
    const body = { events: events.slice(at, at + 100) };
    expect((await sidecar.call('POST', '/v1/sidecar/events', { body })).status).toBe(200);
  }
}

async function download(user: HostedUser): Promise<Response> {
  const headers = { cookie: await signInBrowser(control, user.caller) };
  return control.inBrowser('/audit/export?format=proof', { headers });
}

/** As `svc audit verify --file` does: the statement by the key, and each event by the statement. */
async function verify(text: string): Promise<{ readonly events: number; readonly problem: string | null }> {
  const [first = '', ...lines] = text.trimEnd().split('\n');
  const { control_plane_key: key, signed } = auditStatementReply.parse(JSON.parse(first));
  await compactVerify(signed, await importJWK(key, 'EdDSA'));
  const { chains } = auditStatement.parse(decodeJwt(signed));
  const walk = new ChainWalk(chains, sha256Hex);
  for (const line of lines) {
    const { kind: _, ...event } = JSON.parse(line);
    const broken = walk.take(event);
    if (broken !== null) return { events: walk.events, problem: broken.reason };
  }
  return { events: walk.events, problem: walk.finish()?.reason ?? null };
}

const remove = (sequence: number) =>
  control.context.database.client.execute({
    sql: 'DELETE FROM audit_events WHERE writer = ? AND sequence = ?',
    args: [sidecar.enrolled.sidecar_id, sequence],
  });

test('what a browser downloads verifies, with every event of every chain', async () => {
  const reply = await download(member);
  expect(reply.headers.get('content-disposition')).toBe('attachment; filename="audit-with-proof.ndjson"');
  expect(reply.headers.get('content-type')).toBe('application/x-ndjson');
  const text = await reply.text();
  const events = text.trimEnd().split('\n').length - 1;
  expect(await verify(text)).toEqual({ events, problem: null });
  expect(text.split('planted.example.test').length - 1).toBe(EVENTS);
  const changed = await verify(text.replace('planted.example.test', 'altered.example.test'));
  expect(changed.problem).toBe('wrong_hash');
});

test('another tenant has its own chains in the file, and nobody has it without a session', async () => {
  const stranger = await hostedUser(control);
  const text = await (await download(stranger)).text();
  expect([text.includes('planted.example.test'), text.includes(sidecar.enrolled.sidecar_id)]).toEqual([false, false]);
  expect((await verify(text)).problem).toBeNull();
  expect((await control.inBrowser('/audit/export?format=proof')).status).toBe(401);
});

test('is read page by page as the client takes it', async () => {
  const reader = (await download(owner)).body!.getReader();
  await reader.read();
  await reader.read();
  // Removed after the first pages were taken: what is read later does not have it, so the download breaks.
  await remove(EVENTS);
  await expect(readAll(reader)).rejects.toThrow('the export ended early: missing_event');
});

test('breaks instead of ending short when an event is missing', async () => {
  await remove(700);
  await expect((await download(owner)).text()).rejects.toThrow(`missing_event at event 700`);
});

test('breaks when its reader is suspended meanwhile', async () => {
  const reader = (await download(member)).body!.getReader();
  await reader.read();
  const suspended = await owner.call('PUT', `/v1/members/${member.caller.userId}`, { role: 'member', suspended: true });
  expect(suspended.status).toBe(200);
  await expect(readAll(reader)).rejects.toThrow('suspended');
});

test.each(['csv', 'jsonl'] as const)('so does the %s file without a proof', async (format) => {
  const opened = await exportEvents(control.context, owner.caller, { limit: 100 }, format);
  if (!opened.ok) throw new Error(opened.error.code);
  const reader = opened.value.getReader();
  await reader.read();
  await reader.read();
  const { client } = control.context.database;
  await client.execute(`UPDATE users SET suspended_at = '2026' WHERE id = '${owner.caller.userId}'`);
  await expect(readAll(reader)).rejects.toThrow('suspended');
});

test('a person has at most four open at once, whether they end, break or are abandoned', async () => {
  const open = async () => {
    const made = await exportProof(control.context, owner.caller);
    if (!made.ok) throw new Error(made.error.code);
    return made.value;
  };
  const streams = [await open(), await open(), await open(), await open()];
  expect((await download(owner)).status).toBe(429);
  expect((await download(member)).status).toBe(200);
  await streams[0]!.cancel();
  await new Response(await open()).text();
  await remove(700);
  await expect(new Response(streams[1]).text()).rejects.toThrow('missing_event');
  await (await open()).cancel();
  const head = await control.inBrowser('/audit/export?format=proof', {
    method: 'HEAD',
    headers: { cookie: await signInBrowser(control, owner.caller) },
  });
  expect(head.status).toBe(200);
  await (await open()).cancel();
});

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  for (;;) if ((await reader.read()).done) return;
}
