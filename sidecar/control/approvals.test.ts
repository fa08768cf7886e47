import { compactDecrypt, exportJWK, generateKeyPair } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { ok } from '../../shared/model/result.ts';
import type { ApprovalState } from '../../shared/wire/approvals.ts';
import { viewInput } from '../../shared/wire/approval_views.ts';
import type { ApprovalRequest } from '../ports.ts';
import { FakeClock } from '../testing/fakes.ts';
import { ScriptedChannel } from '../testing/scripted_channel.ts';
import { Approvals } from './approvals.ts';
import { channelFailure } from './channel_failure.ts';
import { Link } from './link.ts';

const operation = sampleOperation({ approval: 'required' });
const CONTENT = { line: 'GET https://api.example.com/items/7', content_type: '', text: 'the body', bytes: 8 };
const REQUEST: ApprovalRequest = {
  match: { connector: sampleConnector([operation]), operation },
  fingerprint: 'f'.repeat(64),
  scope: 'e'.repeat(64),
  summary: 'Items: Get an item',
  show: () => Promise.resolve(CONTENT),
  sessionId: 'ses_1',
};
const here = new AbortController().signal;

let channel: ScriptedChannel;
let approvals: Approvals;

beforeEach(() => {
  channel = new ScriptedChannel(new FakeClock(), new Link());
  approvals = new Approvals({ channel, pause: () => Promise.resolve() });
});

function answers(...states: ApprovalState[]): void {
  channel.approvals = states.map((state, index) => ok({ approvalId: `apr_${index}`, state }));
}

/** The approval, or the refusal's reason with the id of its approval. */
async function outcome(source = approvals, gone = here): Promise<string> {
  const asked = await source.approve(REQUEST, gone);
  return asked.ok ? asked.value : `${asked.error.refusal.reason} ${asked.error.approvalId}`;
}

describe('an approval', () => {
  it('lets the request through at once if it exists, and names the operation', async () => {
    answers('approved');
    expect(await outcome()).toBe('apr_0');
    expect(channel.approvalCalls).toMatchObject([
      {
        subject: { connectorId: 'con_1', operation: 'get-item' },
        fingerprint: REQUEST.fingerprint,
        scope: REQUEST.scope,
        sessionId: 'ses_1',
      },
    ]);
  });

  it('seals the held request to each page that wants to see it, and to nobody else', async () => {
    const { publicKey, privateKey } = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
    const key = viewInput.parse({ key: await exportJWK(publicKey) }).key;
    const view = { id: 'apv_00000000000000000000000000', key };
    channel.approvals = [
      ok({ approvalId: 'apr_0', state: 'pending' }),
      ok({ approvalId: 'apr_0', state: 'pending', views: [view] }),
      ok({ approvalId: 'apr_0', state: 'approved' }),
    ];
    expect(await outcome()).toBe('apr_0');
    expect(channel.sentViews).toMatchObject([{ approvalId: 'apr_0', viewId: view.id }]);
    const sealed = channel.sentViews[0]?.sealed ?? '';
    expect(sealed).not.toContain('the body');
    const { plaintext } = await compactDecrypt(sealed, privateKey);
    expect(JSON.parse(new TextDecoder().decode(plaintext))).toEqual({
      approval_id: 'apr_0',
      fingerprint: REQUEST.fingerprint,
      ...CONTENT,
    });
  });

  it('shows nothing of a request that cannot be masked', async () => {
    const key = { kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43) } as const;
    const views = [{ id: 'apv_00000000000000000000000000', key }];
    channel.approvals = [
      ok({ approvalId: 'apr_0', state: 'pending' }),
      ok({ approvalId: 'apr_0', state: 'pending', views }),
      ok({ approvalId: 'apr_0', state: 'approved' }),
    ];
    await approvals.approve({ ...REQUEST, show: () => Promise.resolve(null) }, here);
    expect(channel.sentViews).toEqual([]);
  });

  it('says which session asks, in words that cannot control what shows them', async () => {
    const known = new Map([['ses_1', { name: 'claude', folder: `/home/ann/\u001b[2J${'x'.repeat(400)}` }]]);
    const told = new Approvals({ channel, findSession: (id) => known.get(id) ?? null });
    answers('approved', 'approved', 'approved');
    await outcome(told);
    await told.approve({ ...REQUEST, sessionId: 'ses_2' }, here);
    await told.approve({ ...REQUEST, sessionId: null }, here);
    const [asked, ...unknown] = channel.approvalCalls;
    expect(asked).toMatchObject({
      sessionName: 'claude',
      folder: expect.stringMatching(/^\/home\/ann\/[ -~…]{1,300}$/u),
    });
    expect(unknown).toMatchObject([1, 2].map(() => ({ sessionName: null, folder: null })));
  });

  it('is polled for with the same request id', async () => {
    answers('pending', 'pending', 'approved');
    expect(await outcome()).toBe('apr_2');
    expect(new Set(channel.approvalCalls.map(({ requestId }) => requestId)).size).toBe(1);
    expect(channel.approvalCalls[1]).toMatchObject({ approvalId: 'apr_0', waitSeconds: 25 });
  });

  it.each([
    [['denied'], 'approval_denied apr_0'],
    [['pending', 'denied'], 'approval_denied apr_1'],
  ] as const)('refuses when it is %o', async (states, expected) => {
    answers(...states);
    expect(await outcome()).toBe(expected);
  });

  it('is requested again if another identical request has used it, but not endlessly', async () => {
    answers('pending', 'used', 'pending', 'approved');
    expect(await outcome()).toBe('apr_3');
    answers('used');
    expect(await outcome()).toBe('approval_required apr_0');
  });

  it('that nobody decides in time refuses with the command to type', async () => {
    answers('pending');
    const asked = await new Approvals({ channel, holdSeconds: 0 }).approve(REQUEST, here);
    expect(asked).toMatchObject({
      ok: false,
      error: { approvalId: 'apr_0', refusal: { reason: 'approval_required' } },
    });
    expect(asked.ok ? '' : asked.error.refusal.message).toContain('svc approvals approve apr_0');
  });

  it('is no longer polled for once the client is gone', async () => {
    answers('pending');
    channel.hold();
    const gone = new AbortController();
    const asked = outcome(approvals, gone.signal);
    gone.abort();
    expect(await asked).toBe('approval_required apr_0');
  });

  it('survives a short outage of the control plane', async () => {
    answers('pending', 'approved');
    channel.approvals.splice(1, 0, { ok: false, error: channelFailure('unreachable', 'away') });
    expect(await outcome()).toBe('apr_1');
  });

  it('cannot be requested while the control plane is down', async () => {
    channel.down = 'unreachable';
    expect(await outcome()).toBe('control_plane_unavailable null');
  });

  it('refuses with approval_required if too many approvals wait already', async () => {
    const error = channelFailure('unavailable', 'decide some first', { status: 429, code: 'too_many_approvals' });
    channel.approvals = [{ ok: false, error }];
    expect(await outcome()).toBe('approval_required null');
  });

  it('holds a limited number of requests; the rest are refused at once', async () => {
    answers('pending');
    channel.hold();
    const few = new Approvals({ channel, maxHeld: 1 });
    const gone = new AbortController();
    const held = outcome(few, gone.signal);
    await Promise.resolve();
    expect(await outcome(few)).toBe('approval_required apr_0');
    gone.abort();
    await held;
    answers('pending', 'approved');
    channel.release();
    expect(await outcome(new Approvals({ channel, maxHeld: 1, pause: () => Promise.resolve() }))).toBe('apr_1');
  });

  it('holds a limited number of requests per session, so other sessions still get a place', async () => {
    answers('pending');
    channel.hold();
    const gone = new AbortController();
    const held = Array.from({ length: 16 }, () => outcome(approvals, gone.signal));
    await new Promise(setImmediate);
    expect(await outcome()).toBe('approval_required apr_0');
    const other = approvals.approve({ ...REQUEST, sessionId: 'ses_2' }, gone.signal);
    await new Promise(setImmediate);
    expect(channel.approvalCalls.filter((call) => 'signal' in call)).toHaveLength(17);
    gone.abort();
    await Promise.all([...held, other]);
    answers('pending', 'approved');
    channel.release();
    expect(await outcome()).toBe('apr_1');
  });
});

describe('an approval of a tool call', () => {
  const TOOL_CALL = {
    show: () => Promise.resolve(null),
    server: { id: 'mcp_1' },
    tool: 'delete_file',
    argumentsHash: 'a'.repeat(64),
    summary: 'files: delete_file (path)',
    sessionId: 'ses_1',
  };

  it('names the server and the tool, and holds the call like any other request', async () => {
    answers('pending', 'approved');
    expect(await approvals.approveTool(TOOL_CALL, here)).toEqual(ok('apr_1'));
    expect(channel.approvalCalls[0]).toMatchObject({
      subject: { mcpServerId: 'mcp_1', tool: 'delete_file' },
      summary: TOOL_CALL.summary,
      sessionId: 'ses_1',
    });
  });

  it('is valid only for the same server, tool and arguments', async () => {
    answers('approved');
    const calls = [
      TOOL_CALL,
      { ...TOOL_CALL, summary: 'told otherwise', sessionId: null },
      { ...TOOL_CALL, server: { id: 'mcp_2' } },
      { ...TOOL_CALL, tool: 'delete_files' },
      { ...TOOL_CALL, argumentsHash: 'b'.repeat(64) },
    ];
    for (const call of calls) await approvals.approveTool(call, here);
    const [first, same, ...others] = channel.approvalCalls.map((call) => 'fingerprint' in call && call.fingerprint);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(same).toBe(first);
    expect(new Set([first, ...others]).size).toBe(4);
  });

  it("shows no terminal escape sequence, even if the server's tool name has one", async () => {
    answers('approved');
    await approvals.approveTool({ ...TOOL_CALL, tool: 'a\u001b[2J', summary: `b\u202e\ud800${'c'.repeat(600)}` }, here);
    const [call] = channel.approvalCalls;
    expect(call).toMatchObject({ subject: { tool: 'a<U+001B>[2J' } });
    expect(call && 'summary' in call && call.summary).toMatch(/^b<U\+202E><U\+D800>c+ … 139 more characters$/);
  });
});
