import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type HostedUser,
  hostedUser,
  ownerWithMember,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import type { AuditEventData, AuditEventType } from '../../../shared/model/audit_event.ts';
import { newId } from '../../../shared/wire/ids.ts';

// Audit and sessions of a hosted console: what has a name for whom.

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let sidecar: TestSidecar;

const SESSION = 'ses_01m7yjbz4dz98vffmftfxp52e5';

beforeAll(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(member.tokens.access_token);
  await record('sandbox.proxy.binding_injected', {
    ...request('api.example.test', '/items'),
    'svc.proxy.credential_ref': 'vault://user/key',
  });
  await record('sandbox.proxy.binding_injected', {
    ...request('api.example.test', '/items'),
    'svc.proxy.credential_ref': 'vault://user/key',
  });
  await record('sandbox.proxy.rejected', {
    ...request('api.example.test', '/<b>'),
    'svc.proxy.reason': 'body_too_large',
  });
  await owner.call('POST', '/v1/mcp-servers', { name: 'files-of-owner', command: ['files-server'] });
});
afterAll(() => control.stop());

const request = (host: string, path: string): AuditEventData => ({
  'svc.proxy.method': 'GET',
  'svc.proxy.upstream.host': host,
  'svc.proxy.upstream.path': path,
});

let recorded = 0;
async function record(type: AuditEventType, data: AuditEventData, writer = sidecar): Promise<void> {
  recorded += 1;
  const event = {
    id: newId('evt', crypto.getRandomValues(new Uint8Array(16))),
    type,
    time: new Date(control.clock.now() + recorded * 1000).toISOString(),
    sidecar_id: null,
    session_id: SESSION,
    actor: 'session',
    data,
  };
  const reply = await writer.call('POST', '/v1/sidecar/events', { body: { events: [event] } });
  expect(reply.status).toBe(200);
}

async function open(user: HostedUser, path: string): Promise<string> {
  const reply = await control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
  return (await reply.text()).replace(/^[^]*<main/, '');
}
const textOf = async (user: HostedUser, path: string) =>
  (await open(user, path)).replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

async function nameOfMachine(): Promise<string> {
  const { items } = JSON.parse(await (await member.call('GET', '/v1/sidecars')).text());
  return items[0].name;
}

describe('the audit log', () => {
  test('names the machine of a request, with its id at hand, and links to the session', async () => {
    const page = await open(owner, '/audit');
    expect(page).toContain(`href="/audit/sessions/${SESSION}"`);
    expect(page).toContain(`title="${sidecar.enrolled.sidecar_id}"`);
    expect(await textOf(owner, '/audit')).toContain(await nameOfMachine());
  });

  test('names the thing that an event is about only for those who see it', async () => {
    const { items } = JSON.parse(
      await (await owner.call('GET', '/v1/audit-events?type=control.mcp_server.created')).text(),
    );
    const path = `/audit/${items[0].id}`;
    const id = items[0].data['svc.mcp.server_id'] ?? items[0].data['svc.control.resource'];
    expect(await open(owner, path)).toMatch(new RegExp(`href="/mcp-servers/${id}"[^]*files-of-owner`));
    expect(await open(member, path)).not.toContain(`href="/mcp-servers/${id}"`);
  });
});

describe('the page of a session', () => {
  test('says for whom it ran, which credentials it used, and what happened in order', async () => {
    const text = await textOf(owner, `/audit/sessions/${SESSION}`);
    expect(text).toContain('2 with a credential, 0 passed unchanged, 1 refused');
    expect(text).toMatch(/Credentials it used.*vault:\/\/user\/key api\.example\.test 2/);
    expect(text).toMatch(/in order.*Credential added.*2 times.*Refused.*body too large/);
    expect(text).toContain(member.caller.userId);
    expect(text).toContain(await nameOfMachine());
  });

  test('that another machine claims too shows both machines, and says so', async () => {
    const claiming = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
    await claiming.enrol(owner.tokens.access_token);
    expect(await textOf(owner, `/audit/sessions/${SESSION}`)).not.toContain('Several machines');
    await record('sandbox.proxy.passthrough', request('claimed.example.test', '/'), claiming);
    const text = await textOf(owner, `/audit/sessions/${SESSION}`);
    expect(text).toContain('Several machines reported events of this session');
    for (const known of [sidecar, claiming]) expect(text).toContain(known.enrolled.sidecar_id);
    for (const known of [member, owner]) expect(text).toContain(known.caller.userId);
  });

  test('has no markup of an agent in it', async () => {
    expect(await open(owner, `/audit/sessions/${SESSION}`)).not.toContain('/<b>');
  });

  test('of another enterprise, or without events, is not found', async () => {
    const stranger = await hostedUser(control);
    expect(await textOf(stranger, `/audit/sessions/${SESSION}`)).toContain('No event of this session');
    expect(await textOf(owner, '/audit/sessions/ses_none')).toContain('No event of this session');
  });
});

describe('the lists of sessions and plans', () => {
  const STEP: AuditEventData = {
    'svc.step.id': 'fetch',
    'svc.reach.effect': 'read',
    'svc.reach.hosts': ['api.example.test'],
    'svc.reach.enforced': true,
    'svc.reach.egress': 'sealed',
  };

  test('show each session with what was decided, and a run of a plan with its steps', async () => {
    expect(await textOf(owner, '/plans')).toContain('No plan has run yet');
    expect(await textOf(owner, `/audit/sessions/${SESSION}`)).not.toContain('Steps of the plan');
    await record('flightplan.launch.reach', STEP);
    await record('sandbox.proxy.trust_denied', {
      ...request('evil.example.test', '/'),
      'svc.step.id': 'fetch',
      'svc.proxy.reason': 'step_scope_host_denied',
    });
    await record('flightplan.launch.reach', {
      ...STEP,
      'svc.step.id': 'publish',
      'svc.proxy.reason': 'step_not_started',
    });
    expect(await textOf(owner, '/audit/sessions')).toMatch(new RegExp(`${SESSION} Plan .* 2 1 2 `));
    const plans = await open(owner, '/plans');
    expect(plans).toContain(`href="/audit/sessions/${SESSION}"`);
    expect(await textOf(owner, '/plans')).toMatch(/ fetch publish: never ran /);
    const session = await textOf(owner, `/audit/sessions/${SESSION}`);
    expect(session).toMatch(/fetch Started Read api\.example\.test 1 refused evil\.example\.test publish Never ran/);
  });

  test('are of the enterprise alone', async () => {
    const stranger = await hostedUser(control);
    expect(await textOf(stranger, '/audit/sessions')).toContain('No session yet');
    expect(await textOf(stranger, '/plans')).toContain('No plan has run yet');
  });

  test('refuse a cursor that is none', async () => {
    for (const path of ['/audit/sessions', '/plans']) {
      expect(await textOf(owner, `${path}?cursor=x`)).toContain('begin at its first page');
    }
  });
});
