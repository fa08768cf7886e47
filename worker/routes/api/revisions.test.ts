import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { type HostedUser, ownerWithMember, startHosted } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
beforeAll(async () => {
  control = await startHosted();
});
beforeEach(async () => {
  ({ owner, member } = await ownerWithMember(control));
});
afterAll(() => control.stop());

const revised = z.looseObject({ id: z.string().optional(), revision: z.string() });
const listed = z.object({ items: z.array(revised) });

const SETTINGS = {
  name: 'Acme',
  billing_email: null,
  allowed_domains: [],
  allowed_providers: null,
  sso_required: false,
  oidc: null,
};
const ACCOUNT = { name: 'deploy', issuer: 'https://id.example.test', audience: 'svc', claims: { sub: 'acme/app' } };

interface Thing {
  readonly path: string;
  readonly read: () => Promise<z.infer<typeof revised>>;
  readonly mine: object;
  readonly theirs: object;
}

const readOne = (path: string) => () => parseReply(revised, owner.call('GET', path));

async function made(path: string, body: object): Promise<string> {
  return `${path}/${(await parseReply(revised, owner.call('POST', path, body))).id}`;
}

const THINGS: Readonly<Record<string, () => Promise<Thing>>> = {
  'the settings of an enterprise': async () => ({
    path: '/v1/enterprise',
    read: readOne('/v1/enterprise'),
    mine: { ...SETTINGS, name: 'Mine' },
    theirs: { ...SETTINGS, billing_email: 'bills@acme.test' },
  }),
  'a member': async () => {
    const { userId } = member.caller;
    const read = async () => {
      const { items } = await parseReply(listed, owner.call('GET', '/v1/members'));
      return items.find(({ id }) => id === userId)!;
    };
    const [mine, theirs] = [
      { role: 'admin', suspended: false },
      { role: 'member', suspended: true },
    ];
    return { path: `/v1/members/${userId}`, read, mine, theirs };
  },
  'a service account': async () => {
    const path = await made('/v1/service-accounts', ACCOUNT);
    const theirs = { ...ACCOUNT, suspended: true };
    return { path, read: readOne(path), mine: { ...ACCOUNT, minutes: 30 }, theirs };
  },
  'a group': async () => {
    const path = await made('/v1/groups', { name: 'Data' });
    return { path, read: readOne(path), mine: { name: 'Mine' }, theirs: { name: 'Theirs' } };
  },
  'the rules of MCP servers': async () => ({
    path: '/v1/mcp-rules',
    read: readOne('/v1/mcp-rules'),
    mine: { isolation: 'container' },
    theirs: { pinned_only: true },
  }),
};

test.each(Object.keys(THINGS))('%s: a change of an earlier revision is refused', async (name) => {
  const { path, read, mine, theirs } = await THINGS[name]!();
  const { revision } = await read();
  const put = (body: object, ifMatch: string) => owner.call('PUT', path, body, { 'if-match': ifMatch });
  expect((await put(theirs, `"${revision}"`)).status).toBe(200);
  const after = await read();
  expect(after.revision).not.toBe(revision);
  for (const reply of [await put(mine, `"${revision}"`), await owner.call('PUT', path, { ...mine, revision })]) {
    expect([reply.status, await reply.json()]).toMatchObject([
      409,
      { error: { code: 'conflict', message: expect.stringContaining('changed meanwhile: read again') } },
    ]);
  }
  expect(await read()).toEqual(after);
  expect((await put({ ...mine, revision }, `"${after.revision}"`)).status).toBe(400);
  expect((await put(mine, 'unquoted')).status).toBe(400);
  expect((await put(mine, `"${after.revision}"`)).status).toBe(200);
  expect((await put(theirs, '*')).status).toBe(200);
});

test('the revision of the settings changes with the secret of the provider, which nothing shows', async () => {
  const oidc = { issuer: 'https://id.example.test', client_id: 'ci', client_secret: 'one', domains: [] };
  const put = (body: object, revision: string) => owner.call('PUT', '/v1/enterprise', { ...body, revision });
  const first = await parseReply(revised, owner.call('PUT', '/v1/enterprise', { ...SETTINGS, oidc }));
  expect((await put({ ...SETTINGS, oidc: { ...oidc, client_secret: 'two' } }, first.revision)).status).toBe(200);
  expect((await put({ ...SETTINGS, oidc: { ...oidc, client_secret: 'three' } }, first.revision)).status).toBe(409);
});
