import { createPublicKey, verify } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type HostedUser,
  hostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
} from '../../../e2e/runtimes/hosted_users.ts';
import { addUser, type InProcess, startInProcess, storeConnector } from '../../../e2e/runtimes/in_process.ts';
import { ok } from '../../../shared/model/result.ts';
import type { Caller } from '../../kernel/caller.ts';
import { toBase64Url } from '../../kernel/encoding.ts';
import type { OutboundReply, OutboundRequest } from '../../kernel/outbound.ts';
import { askApproval } from '../approvals/approvals.ts';
import { type BrowserSide, decryptPush, makeBrowser } from '../../../e2e/support/decrypt_push.ts';

const message = z.strictObject({ title: z.string(), path: z.string(), tag: z.string() });

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let other: HostedUser;
let pushes: OutboundRequest[];
let answer: Pick<OutboundReply, 'status'> & Partial<OutboundReply>;
let whileCalled: () => Promise<void>;
const outbound = {
  async call(request: OutboundRequest) {
    pushes.push(request);
    await whileCalled();
    return ok({ contentType: '', body: new Uint8Array(), ...answer });
  },
};

beforeEach(async () => {
  [pushes, answer, whileCalled] = [[], { status: 201 }, async () => undefined];
  control = await startInProcess({ localKey: null, publicUrl: PUBLIC_URL, outbound });
  ({ owner, member } = await ownerWithMember(control));
  other = await hostedUser(control, owner.caller.enterpriseId);
});
afterEach(() => control.stop());

/** A browser that is signed in as somebody. */
interface Signed {
  readonly cookie: string;
  readonly side: BrowserSide;
  readonly endpoint: string;
}

let endpoints = 0;
async function signIn({ caller }: HostedUser): Promise<Signed> {
  endpoints += 1;
  const endpoint = `https://push.example.com/send/${endpoints}`;
  return { cookie: await signInBrowser(control, caller), side: await makeBrowser(), endpoint };
}

function post({ cookie }: Signed, path: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
  const headers = { cookie, origin: PUBLIC_URL, 'sec-fetch-site': 'same-origin' };
  return control.send(path, { method: 'POST', headers, body: new URLSearchParams(fields) });
}
const fieldsOf = ({ endpoint, side: { p256dh, auth } }: Signed) => ({ endpoint, p256dh, auth });

async function subscribed(user: HostedUser): Promise<Signed> {
  const browser = await signIn(user);
  const reply = await post(browser, '/account/push', fieldsOf(browser));
  expect([reply.status, reply.headers.get('location')]).toEqual([303, '/account?done=push_on']);
  return browser;
}

let requests = 0;
async function ask({ caller }: HostedUser = member, name = 'acme/secret-plan'): Promise<void> {
  requests += 1;
  const { userId, enterpriseId } = caller;
  await storeConnector(control, caller);
  const asked = await askApproval(
    control.context,
    { userId, enterpriseId, sidecarId: null },
    {
      requestId: `r${requests}`,
      fingerprint: `f${requests}`,
      summary: 'planted-summary',
      sessionId: null,
      subject: {
        subject: 'connector',
        subjectId: 'con_1',
        subjectOwnerId: userId,
        subjectName: name,
        subjectVersion: '1',
        action: 'delete-item',
      },
    },
  );
  if (!asked.ok) throw new Error(asked.error.message);
  await control.settle();
}
async function query(sql: string): Promise<readonly unknown[]> {
  return (await control.context.database.client.execute(sql)).rows;
}
/** What the logs of all enterprises say about notifications, oldest first. */
const events = () =>
  query(`SELECT enterprise_id, type, actor FROM audit_events WHERE type LIKE 'control.push.%' ORDER BY position`);
const approvalId = async () =>
  z.object({ id: z.string() }).parse({ ...Object((await query('SELECT id FROM approvals'))[0]) }).id;
const tellsTo = () => pushes.map(({ url }) => url);
const rows = () => query('SELECT * FROM push_subscriptions ORDER BY created_at');
const read = async ({ side }: Signed, { body }: OutboundRequest) =>
  message.parse(JSON.parse(new TextDecoder().decode(await decryptPush(side, body ?? new Uint8Array()))));

describe('a request that waits', () => {
  test('is told to the browser of whoever may approve it, in a message that it alone can read', async () => {
    const browser = await subscribed(member);
    await ask();
    expect(pushes).toMatchObject([
      {
        method: 'POST',
        url: browser.endpoint,
        isStrangers: true,
        headers: {
          'content-encoding': 'aes128gcm',
          urgency: 'high',
          ttl: '3600',
          topic: expect.stringMatching(/^[\w-]{32}$/),
        },
        limits: { timeoutMs: 10_000 },
      },
    ]);
    const [push] = pushes;
    const shown = await read(browser, push!);
    expect(shown).toEqual({
      title: 'A request needs an approval',
      path: `/approvals/${await approvalId()}`,
      tag: await approvalId(),
    });
    await expect(read(await signIn(member), push!)).rejects.toThrow('unable to authenticate data');
    const opened = await control.send(shown.path, { headers: { cookie: browser.cookie } });
    expect(await opened.text()).toContain('acme/secret-plan');
  });

  test('is signed for its push service alone (RFC 8292)', async () => {
    await subscribed(member);
    await ask();
    const [, token = '', key = ''] =
      /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(pushes[0]?.headers['authorization'] ?? '') ?? [];
    const [head = '', claims = '', signature = ''] = token.split('.');
    const point = Buffer.from(key, 'base64url');
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => toBase64Url(part));
    const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x!, y: y! }, format: 'jwk' });
    const isGenuine = verify(
      'sha256',
      Buffer.from(`${head}.${claims}`),
      { key: publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    expect(isGenuine).toBe(true);
    const seconds = control.clock.now() / 1000;
    const parsed = JSON.parse(Buffer.from(claims, 'base64url').toString());
    expect(parsed).toMatchObject({ aud: 'https://push.example.com', sub: PUBLIC_URL });
    expect(parsed.exp).toBeGreaterThan(seconds);
    expect(parsed.exp).toBeLessThanOrEqual(seconds + 24 * 3600);
  });

  test('is told to nobody else', async () => {
    await subscribed(other);
    await subscribed(owner);
    const stranger = await hostedUser(control);
    await subscribed(stranger);
    await subscribed(member);
    await ask();
    expect(tellsTo()).toHaveLength(1);
  });

  test('is told to those whom a rule names, and not again to who has approved it', async () => {
    const rule = { subject: 'connector', role: 'member', persons: 2, excludes_requester: true };
    expect((await owner.call('POST', '/v1/approval-rules', rule)).status).toBe(201);
    const [mine, first, second] = [await subscribed(member), await subscribed(other), await subscribed(owner)];
    await ask();
    expect(tellsTo().toSorted()).toEqual([first.endpoint, second.endpoint].toSorted());
    const id = await approvalId();
    pushes = [];
    expect((await other.call('POST', `/v1/approvals/${id}/decide`, { decision: 'approve' })).status).toBe(200);
    await control.settle();
    expect([tellsTo(), mine.endpoint]).toEqual([[second.endpoint], expect.any(String)]);
    pushes = [];
    await owner.call('PUT', `/v1/members/${other.caller.userId}`, { role: 'member', suspended: true });
    await ask();
    expect(tellsTo()).toEqual([second.endpoint]);
  });

  test('has another topic for each browser, which does not name it', async () => {
    const [one, another] = [await subscribed(member), await subscribed(member)];
    await ask();
    const topics = pushes.map(({ headers }) => headers['topic'] ?? '');
    expect(new Set(tellsTo())).toEqual(new Set([one.endpoint, another.endpoint]));
    expect(new Set(topics).size).toBe(2);
    expect(topics).not.toContain(await approvalId());
  });

  test('is told to whoever may approve it, however many others have notifications', async () => {
    for (let at = 0; at < 210; at += 1) {
      await signInBrowser(control, await addUser(control.context, owner.caller.enterpriseId));
    }
    await query(`INSERT INTO push_subscriptions (session_id, user_id, endpoint_hash, host, sealed, created_at)
      SELECT id, user_id, id, 'push.example.com', '', '' FROM browser_sessions`);
    const late = await hostedUser(control, owner.caller.enterpriseId);
    const browser = await subscribed(late);
    await ask(late);
    expect(tellsTo()).toEqual([browser.endpoint]);
  });

  test('does not fail when the push service does not answer, which is left alone for longer each time', async () => {
    await subscribed(member);
    answer = { status: 500 };
    for (const [failures, seconds] of [
      [1, 15],
      [2, 30],
      [3, 60],
    ] as const) {
      await ask();
      const quiet = Math.ceil(control.clock.now() / 1000) + seconds;
      expect(await rows()).toMatchObject([{ problem: 'status_500', failures, quiet_until: quiet }]);
      await ask();
      expect(pushes).toHaveLength(failures);
      control.clock.ms += (seconds + 1) * 1000;
    }
    await query('UPDATE push_subscriptions SET failures = 40');
    await ask();
    expect(await rows()).toMatchObject([{ quiet_until: Math.ceil(control.clock.now() / 1000) + 3_600 }]);
    control.clock.ms += 3_601_000;
    answer = { status: 201 };
    await ask();
    expect(await rows()).toMatchObject([{ problem: null, failures: 0, quiet_until: 0 }]);
  });

  test('is told to nobody while the key cannot be opened, which the page says', async () => {
    const browser = await subscribed(member);
    await keyOf(member);
    await query("UPDATE push_keys SET sealed_private_key = 'damaged'");
    const cause = { message: 'the key for push services in the database is damaged' };
    await expect(ask()).rejects.toMatchObject({ cause });
    const page = await control.send('/account', { headers: { cookie: browser.cookie } });
    expect([pushes, await page.text()]).toEqual([[], expect.stringContaining('push_key_damaged')]);
  });

  test('says nothing of a browser that subscribed anew meanwhile', async () => {
    const browser = await subscribed(member);
    answer = { status: 500 };
    whileCalled = async () => {
      await post(browser, '/account/push', { ...fieldsOf(browser), endpoint: `${browser.endpoint}/anew` });
    };
    await ask();
    expect(await rows()).toMatchObject([{ problem: null, failures: 0, quiet_until: 0 }]);
  });

  test('is not told while the push service asks to be left alone', async () => {
    await subscribed(member);
    answer = { status: 429, retryAfter: '120' };
    await ask();
    await ask();
    expect(pushes).toHaveLength(1);
    control.clock.ms += 121_000;
    await ask();
    expect(pushes).toHaveLength(2);
  });

  test('is told sixty times in an hour at most, also to a browser that is signed in anew', async () => {
    const first = await subscribed(member);
    for (let at = 0; at < 61; at += 1) {
      await ask();
      await query("UPDATE approvals SET state = 'denied'");
    }
    expect(await rows()).toMatchObject([{ problem: 'hourly_limit' }]);
    const again = { ...(await signIn(member)), endpoint: first.endpoint };
    await post(again, '/account/push', fieldsOf(again));
    await ask();
    expect(pushes).toHaveLength(60);
    expect(await rows()).toMatchObject([{ problem: 'hourly_limit' }]);
  });

  test('is told a user six hundred times in an hour at most, whatever addresses their browsers give', async () => {
    await subscribed(member);
    await ask();
    await query("UPDATE throttles SET count = 600 WHERE key LIKE 'push for %'");
    await subscribed(member);
    await ask();
    expect(pushes).toHaveLength(1);
  });
});

describe('a subscription', () => {
  test.each([404, 410])('that its push service does not know any more is removed: %d', async (status) => {
    await subscribed(member);
    answer = { status };
    await ask();
    expect(await rows()).toEqual([]);
    const { enterpriseId, userId } = member.caller;
    expect(await events()).toMatchObject([
      { type: 'control.push.subscribed', actor: userId },
      { enterprise_id: enterpriseId, type: 'control.push.removed', actor: null },
    ]);
  });

  test('is one of ten of its user: the oldest goes', async () => {
    const browsers: Signed[] = [];
    for (let at = 0; at < 11; at += 1) {
      browsers.push(await subscribed(member));
      control.clock.ms += 1_000;
    }
    await subscribed(other);
    expect(await rows()).toHaveLength(11);
    await ask();
    expect(new Set(tellsTo())).toEqual(new Set(browsers.slice(1).map(({ endpoint }) => endpoint)));
    const removed = (await events()).filter((event) => Object(event).type === 'control.push.removed');
    expect(removed).toMatchObject([{ actor: member.caller.userId }]);
  });

  test('ends with the session of its browser', async () => {
    const browser = await subscribed(member);
    await post(browser, '/auth/logout');
    expect(await rows()).toEqual([]);
    const again = await subscribed(member);
    control.clock.ms += 40 * 24 * 3_600_000;
    await ask();
    expect([pushes, again.endpoint]).toEqual([[], expect.any(String)]);
  });

  test('is listed with its browser, and removed by its user alone', async () => {
    const browser = await subscribed(member);
    const id = z.object({ session_id: z.string() }).parse({ ...Object(await rows().then(([row]) => row)) }).session_id;
    const page = await (await control.send('/account', { headers: { cookie: browser.cookie } })).text();
    expect(page).toContain('push.example.com');
    expect(page).not.toContain(browser.endpoint);
    const foreign = await post(await signIn(other), `/account/push/${id}/end`);
    expect([foreign.status, (await rows()).length]).toEqual([404, 1]);
    expect((await post(browser, `/account/push/${id}/end`)).headers.get('location')).toBe('/account?done=push_off');
    await ask();
    expect([await rows(), pushes]).toEqual([[], []]);
  });

  test('of a browser is of whoever subscribed there last', async () => {
    const browser = await subscribed(member);
    const next = { ...(await signIn(other)), endpoint: browser.endpoint };
    await post(next, '/account/push', fieldsOf(next));
    expect(await rows()).toMatchObject([{ user_id: other.caller.userId }]);
    await ask();
    expect(pushes).toEqual([]);
    const stranger = await hostedUser(control);
    const last = {
      ...(await signIn(stranger)),
      endpoint: browser.endpoint.replace('push.example.com', 'PUSH.example.com:443'),
    };
    await post(last, '/account/push', fieldsOf(last));
    expect(await rows()).toMatchObject([{ user_id: stranger.caller.userId }]);
    const removed = (await events()).filter((event) => Object(event).type === 'control.push.removed');
    const { enterpriseId } = member.caller;
    expect(removed).toMatchObject([
      { enterprise_id: enterpriseId, actor: other.caller.userId },
      { enterprise_id: enterpriseId, actor: null },
    ]);
  });

  test('is sealed, and its address is in no log', async () => {
    const browser = await subscribed(member);
    await ask();
    const stored = (await control.databaseBytes()).toString('latin1') + JSON.stringify(control.log);
    for (const planted of [browser.endpoint, browser.side.p256dh, browser.side.auth])
      expect(stored).not.toContain(planted);
  });

  test.each([
    ['', {}],
    ['push', {}],
    [`https://push.example.com/${'x'.repeat(1_000)}`, {}],
    ['http://push.example.com/x', {}],
    ['https://127.0.0.1/x', {}],
    ['https://localhost/x', {}],
    ['https://push.example.com:8443/x', {}],
    ['https://user:pass@push.example.com/x', {}],
    ['https://push.example.com/x#1', {}],
    ['https://push.example.com/x#', {}],
    ['https://push.example.com./x', {}],
    ['https://push.example.com/x', { auth: 'AAAA' }],
    ['https://push.example.com/x', { p256dh: toBase64Url(new Uint8Array(65).fill(4)) }],
    ['https://push.example.com/x', { p256dh: '!' }],
  ])('to %s with %j is refused', async (endpoint, change) => {
    const browser = { ...(await signIn(member)), endpoint };
    const reply = await post(browser, '/account/push', { ...fieldsOf(browser), ...change });
    expect([reply.status, await rows()]).toEqual([400, []]);
  });

  test('is made from a page of the control plane alone', async () => {
    const browser = await signIn(member);
    const headers = { cookie: browser.cookie, origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' };
    const body = new URLSearchParams(fieldsOf(browser));
    const reply = await control.send('/account/push', { method: 'POST', headers, body });
    expect([reply.status, await rows()]).toEqual([403, []]);
  });
});

async function account({ caller }: HostedUser): Promise<Response> {
  return control.send('/account', { headers: { cookie: await signInBrowser(control, caller) } });
}
const keyOf = async (user: HostedUser) => /data-key="([\w-]+)"/.exec(await (await account(user)).text())?.[1];

describe('the account page', () => {
  test('lets its island register the service worker, and nothing else', async () => {
    const reply = await account(member);
    expect(reply.headers.get('content-security-policy')).toContain('trusted-types svc-push');
    expect(await reply.text()).toMatch(/data-island="push" data-key="B[\w-]{86}"/);
    const elsewhere = await control.send('/sign-in');
    expect(elsewhere.headers.get('content-security-policy')).toContain("trusted-types 'none'");
  });

  test('shows the same key to everybody, and after a restart', async () => {
    const [one, another] = await Promise.all([keyOf(member), keyOf(other)]);
    expect(another).toBe(one);
  });

  test('has the service worker at one address, asked for again each time', async () => {
    const reply = await control.send('/push_worker.js');
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
    expect(reply.headers.get('cache-control')).toBe('no-cache');
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await reply.text()).toContain("addEventListener('push'");
  });
});

test('a control plane on this machine offers no notifications', async () => {
  await control.stop();
  control = await startInProcess({ outbound });
  const { rows: users } = await control.context.database.client.execute('SELECT id, enterprise_id FROM users');
  const { id, enterprise_id: enterpriseId } = z
    .object({ id: z.string(), enterprise_id: z.string() })
    .parse({ ...users[0] });
  const caller: Caller = { userId: id, enterpriseId, role: 'owner' };
  const cookie = await signInBrowser(control, caller);
  const page = await control.inBrowser('/account', { headers: { cookie } });
  expect(await page.text()).not.toContain('data-island="push"');
});
