import { z } from 'zod';
import { createdInvitation } from '../../shared/wire/invitations.ts';
import { createdScimToken } from '../../shared/wire/scim_tokens.ts';
import { sharesPage } from '../../shared/wire/sharing/shares.ts';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';
import { storeIdentity, storeJoinRequest, storeMcpClient } from '../runtimes/hosted_rows.ts';
import { hostedUser, type HostedUser, ownerWithMember, PUBLIC_URL } from '../runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../runtimes/in_process.ts';
import type { TestSidecar } from '../runtimes/sidecar_client.ts';
import { namedOutbound } from '../sign_in/named_outbound.ts';
import { MintingProviders } from '../support/minting_providers.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type ApiReply, expectStatus } from '../support/svc.ts';
import { type Asker, askerWith, hostedAsker } from './asker.ts';
import { Planter, startPlantedRegistry } from './planter.ts';

const MINTING = 'minting.example.test';
const REGISTRY = 'registry.example.test';
const SIGNING = { scheme: 'sigv4-resign', access_key_id: 'minted', region: 'eu-north-1', service: 's3' };
/** The schemes of bindings for what `MintingProviders` mints. */
const MINTED = {
  aws: SIGNING,
  google: { scheme: 'bearer' },
  azure: { scheme: 'bearer' },
  github: { scheme: 'bearer' },
};

const withId = z.object({ id: z.string() });

/** A hosted control plane with the things of one enterprise, and those who ask there. */
export interface PlantedTeam {
  readonly control: InProcess;
  readonly planter: Planter;
  readonly askers: Readonly<Record<AskerName, Asker>>;
  /** What the control plane stores, mints or has shown once. */
  readonly secrets: readonly string[];
  /** Paths that no list and no link leads to. */
  readonly more: readonly string[];
  stop(): Promise<void>;
}

/** Who asks. `another enterprise` is its admin, `a directory` has a SCIM token of the founder's enterprise, `nobody` has nothing. */
export const ASKERS = ['the founder', 'an admin', 'a member', 'another enterprise', 'a directory', 'nobody'] as const;
export type AskerName = (typeof ASKERS)[number];

/** What {@link Planter} makes for the founder, minted values, and what only people together have. */
export async function startPlantedTeam(): Promise<PlantedTeam> {
  const registry = await startPlantedRegistry();
  const providers = await MintingProviders.start();
  const control = await startInProcess({
    localKey: null,
    publicUrl: PUBLIC_URL,
    clock: SYSTEM_CLOCK,
    outbound: namedOutbound({ [MINTING]: providers.url, [REGISTRY]: registry.url }),
    registry: { url: `https://${REGISTRY}` },
  });
  const { owner: founder, member } = await ownerWithMember(control);
  const team = {
    founder,
    member,
    admin: await hostedUser(control, founder.caller.enterpriseId, 'admin'),
    stranger: await hostedUser(control),
  };
  const asFounder = await hostedAsker(control, founder);
  const planter = new Planter(apiOf(founder), asFounder.sidecar);
  await planter.plant();
  await providers.addSources(apiOf(founder), `https://${MINTING}`);
  await mintEach(founder, asFounder.sidecar);
  const planted = await plantTogether(control, team, planter.shown);
  const askers = {
    'the founder': asFounder,
    'an admin': await hostedAsker(control, team.admin),
    'a member': await hostedAsker(control, member),
    'another enterprise': await hostedAsker(control, team.stranger),
    'a directory': await askerWith(control, { authorization: `Bearer ${planted.directoryToken}` }),
    nobody: await askerWith(control, {}),
  };
  const stop = async (): Promise<void> => {
    await control.stop();
    await providers.close();
    await registry.stop();
  };
  const secrets = [...planter.secrets, ...planted.secrets, ...providers.keys, ...providers.values];
  return { control, planter, askers, secrets, more: [...planter.more, ...planted.more], stop };
}

/** Has each value minted, as the sidecar of the source's owner does. */
async function mintEach(owner: HostedUser, sidecar: TestSidecar): Promise<void> {
  const sources = Object.entries(MINTED).map(([name, scheme]) => ({ name, path: `ci/${name}`, scheme }));
  for (const { name, path, scheme } of sources) {
    await make(owner, '/v1/host-bindings', {
      host: `${name}.example.test`,
      ...scheme,
      credential_ref: `vault://${path}`,
    });
  }
  const credentials = sources.map(({ path }) => ({ owner: 'personal', path }));
  const body = { request_id: crypto.randomUUID(), credentials };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  if (!reply.ok) throw new Error(`not each value was minted: ${await reply.text()}`);
}

/** Makes a thing; returns its id. */
async function make(user: HostedUser, path: string, body: object): Promise<string> {
  const reply = await apiOf(user).api('POST', path, body);
  expectStatus(reply, 200, 201);
  return withId.parse(reply.body).id;
}

/** The API, as a user's program calls it. */
const apiOf = (user: HostedUser) => ({
  async api(method: string, path: string, body?: unknown): Promise<ApiReply> {
    const reply = await user.call(method, path, body);
    const text = await reply.text();
    return { status: reply.status, body: text === '' ? null : JSON.parse(text) };
  },
});

type Team = Readonly<Record<'founder' | 'admin' | 'member' | 'stranger', HostedUser>>;

/** What an enterprise of several people has: shares, groups, invitations, requests to join, a directory. */
async function plantTogether(control: InProcess, { founder, member, stranger }: Team, shown: string) {
  const [ofEnterprise, ofMember] = [plantSecret(), plantSecret()];
  const binding = { scheme: 'bearer', credential_ref: 'vault://team/key', effect: 'read', description: shown };
  await make(founder, '/v1/secrets', { path: 'team/key', value: ofEnterprise, owner: 'enterprise' });
  await make(founder, '/v1/host-bindings', { ...binding, host: 'team.example.test', owner: 'enterprise' });
  await make(member, '/v1/secrets', { path: 'team/key', value: ofMember });
  for (const host of ['lent.example.test', 'offered.example.test']) {
    const lentId = await make(member, '/v1/host-bindings', { ...binding, host });
    await make(member, '/v1/shares', { binding_id: lentId, user_id: founder.caller.userId });
  }
  const received = await parseReply(sharesPage, founder.call('GET', '/v1/shares?list=received'));
  const { id, binding: lent } = received.items[0]!;
  await make(founder, `/v1/shares/${id}/accept`, { revision: lent?.revision });
  const suspended = await hostedUser(control, founder.caller.enterpriseId);
  const change = { role: 'member', suspended: true };
  expectStatus(await apiOf(founder).api('PUT', `/v1/members/${suspended.caller.userId}`, change), 200);
  const groupId = await make(founder, '/v1/groups', { name: 'data' });
  expectStatus(await apiOf(founder).api('PUT', `/v1/groups/${groupId}/members/${member.caller.userId}`), 204);
  await storeIdentity(control, founder.caller, 'founder');
  await storeMcpClient(control, founder.caller, 'assistant');
  await storeJoinRequest(control, stranger.caller, 'stranger', founder.caller.enterpriseId);
  const invite = (email: string) =>
    parseReply(createdInvitation, founder.call('POST', '/v1/invitations', { email, role: 'member' }));
  const [kept, opened] = [await invite('kept@example.test'), await invite('opened@example.test')];
  const directory = await parseReply(createdScimToken, founder.call('POST', '/v1/scim-tokens', { name: 'directory' }));
  const secrets = [ofEnterprise, ofMember, kept.url.split('/').at(-1) ?? '', directory.token];
  const more = [new URL(opened.url).pathname, `/members/${suspended.caller.userId}`];
  return { secrets, more, directoryToken: directory.token };
}
