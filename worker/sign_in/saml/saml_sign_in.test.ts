import { inflateRawSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { type CodeHost, startCodeHost } from '../../../e2e/sign_in/code_host.ts';
import { FRONT, HOST, startHostedSignIn } from '../../../e2e/sign_in/hosted_sign_in.ts';
import { namedOutbound } from '../../../e2e/sign_in/named_outbound.ts';
import {
  newCertifiedKey,
  PERSISTENT,
  sampleAssertion,
  sampleMetadata,
  sampleResponse,
  type SampleResponse,
  type SamlKey,
  signXml,
} from '../../../e2e/sign_in/saml_samples.ts';
import { TestBrowser } from '../../../e2e/sign_in/test_browser.ts';
import { ok } from '../../../shared/model/result.ts';
import { meReply } from '../../../shared/wire/account.ts';
import { type EnterpriseSettings, enterpriseSettings } from '../../../shared/wire/enterprise.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { CLIENT_RESPONSES, receiveResponse, RESPONSES } from './receive_response.ts';

const IDP = 'https://idp.acme.test/saml';
const SSO = 'https://idp.acme.test/sso?tenant=1';

let codeHost: CodeHost;
let key: SamlKey;
let otherKey: SamlKey;
let control: InProcess;
let admin: TestBrowser;
let enterprise: EnterpriseSettings;
/** The files of other hosts, by URL. */
let files: Record<string, string>;

beforeAll(async () => {
  codeHost = await startCodeHost();
  [key, otherKey] = await Promise.all([newCertifiedKey(), newCertifiedKey()]);
});
afterAll(() => codeHost.stop());

beforeEach(async () => {
  files = {};
  const named = namedOutbound({ 'code.acme.test': codeHost.loopback });
  control = await startHostedSignIn({
    call(request) {
      const file = files[request.url];
      if (file === undefined) return named.call(request);
      return Promise.resolve(ok({ status: 200, contentType: 'text/plain', body: new TextEncoder().encode(file) }));
    },
  });
  [admin, enterprise] = await newEnterprise('alice@acme.test', 1);
});
afterEach(() => control.stop());

const newBrowser = () => new TestBrowser(control.send, FRONT);

/** A person who signs up alone, as the owner of a new enterprise. */
async function newEnterprise(email: string, id: number): Promise<[TestBrowser, EnterpriseSettings]> {
  codeHost.user = { id, login: 'someone', name: 'Someone', email };
  codeHost.emails = [{ email, primary: true, verified: true }];
  const browser = newBrowser();
  const begun = await browser.get('/auth/codehost/login');
  const back = codeHost.authorise(begun.headers.get('location') ?? '');
  expect((await browser.get(back.pathname + back.search)).status).toBe(303);
  return [browser, await parseReply(enterpriseSettings, browser.get('/v1/enterprise'))];
}

function put(more: object, browser = admin): Promise<Response> {
  const plain = { name: 'Acme', billing_email: null, allowed_domains: [], allowed_providers: null, oidc: null };
  return control.send('/v1/enterprise', {
    method: 'PUT',
    headers: {
      ...FRONT,
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      cookie: `__Host-session=${browser.cookies.get('__Host-session')}`,
    },
    body: JSON.stringify({ ...plain, sso_required: false, ...more }),
  });
}

const errorOf = async (reply: Response) => errorBody.parse(await reply.json()).error;

/** Gives an enterprise its SAML provider, and a domain that it proves. */
async function withSaml(more: object = {}): Promise<void> {
  files['https://acme.test/.well-known/svc-enterprise.txt'] = enterprise.id;
  const saml = { metadata: sampleMetadata(IDP, SSO.replace('&', '&amp;'), [key]), domains: ['acme.test'] };
  const reply = await put({ saml, ...more });
  expect([reply.status, await reply.text()]).toEqual([200, expect.any(String)]);
}

interface BegunSaml {
  readonly request: string;
  readonly relayState: string;
  readonly of: SampleResponse;
}

async function begin(browser: TestBrowser, id = enterprise.id): Promise<BegunSaml> {
  const begun = await browser.get(`/auth/${id}/login`);
  expect(begun.status).toBe(303);
  const url = new URL(begun.headers.get('location') ?? '');
  const request = inflateRawSync(Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64')).toString();
  const base = `https://${HOST}/auth/${id}`;
  const of = {
    issuer: IDP,
    acsUrl: `${base}/acs`,
    audience: `${base}/metadata`,
    requestId: / ID="([^"]+)"/.exec(request)?.[1] ?? '',
    nowMs: control.context.clock.now(),
    nameId: 'alice-1',
    format: PERSISTENT,
    email: 'alice@acme.test',
  };
  return { request, relayState: url.searchParams.get('RelayState') ?? '', of };
}

/** The form of the provider's page, as a browser sends it from there: without our cookies. */
function post(id: string, relayState: string, response: string): Promise<Response> {
  const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://idp.acme.test' };
  const fields = { SAMLResponse: Buffer.from(response).toString('base64'), RelayState: relayState };
  return newBrowser().submit(`/auth/${id}/acs`, fields, headers);
}

const answer = (of: SampleResponse, by = key, assertionId = '_assertion') =>
  signXml(sampleResponse(of, sampleAssertion(of, assertionId)), by, { id: assertionId });

async function signIn(
  browser: TestBrowser,
  more: Partial<SampleResponse> = {},
  assertionId?: string,
): Promise<Response> {
  const { relayState, of } = await begin(browser);
  const received = await post(enterprise.id, relayState, answer({ ...of, ...more }, key, assertionId));
  return received.status === 303 ? browser.get(received.headers.get('location') ?? '') : received;
}

const LIST = '<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" Name="acme">';
const METADATA = () => sampleMetadata(IDP, SSO.replace('&', '&amp;'), [key]);
const bareMetadata = () => METADATA().replace(/^<[?][^>]*>/, '');
const withComments = () =>
  bareMetadata().replaceAll(/<md:(?:KeyDescriptor|SingleSignOnService)/g, '<!-- next: <x> -->$&');

const me = (browser: TestBrowser) => parseReply(meReply, browser.get('/v1/me'));

describe('the settings of a SAML provider', () => {
  test('are read from metadata, and show what they mean', async () => {
    await withSaml();
    const now = await parseReply(enterpriseSettings, admin.get('/v1/enterprise'));
    expect(now).toMatchObject({
      oidc: null,
      saml: {
        entity_id: IDP,
        sso_url: SSO,
        certificates: [expect.stringMatching(/^[0-9a-f]{64}$/)],
        metadata_url: null,
        domains: ['acme.test'],
        metadata_path: `/auth/${enterprise.id}/metadata`,
        acs_path: `/auth/${enterprise.id}/acs`,
      },
    });
  });

  test('are read once from a URL, and stay if none is given', async () => {
    const url = 'https://idp.acme.test/metadata';
    files[url] = sampleMetadata(IDP, SSO, [key, otherKey]);
    files['https://acme.test/.well-known/svc-enterprise.txt'] = enterprise.id;
    expect((await put({ saml: { metadata_url: url, domains: ['acme.test'] } })).status).toBe(200);
    files[url] = sampleMetadata('https://evil.test', SSO, [otherKey]);
    expect((await put({ saml: { domains: [] } })).status).toBe(200);
    const now = await parseReply(enterpriseSettings, admin.get('/v1/enterprise'));
    expect(now.saml).toMatchObject({ entity_id: IDP, metadata_url: url, domains: [] });
    expect(now.saml?.certificates).toHaveLength(2);
  });

  test.each([
    ['with comments', () => `<?xml version="1.0"?>\n<!-- by Acme -->\n${withComments()}\n<!-- end -->`],
    ['as the only entity of a list', () => `${LIST}<!-- one -->${bareMetadata()}</md:EntitiesDescriptor>`],
  ])('are read from metadata %s', async (_, metadata) => {
    expect((await put({ saml: { metadata: metadata(), domains: [] } })).status).toBe(200);
    const now = await parseReply(enterpriseSettings, admin.get('/v1/enterprise'));
    expect(now.saml).toMatchObject({ entity_id: IDP, sso_url: SSO, certificates: [expect.any(String)] });
  });

  test('can only be changed by owners', async () => {
    await withSaml();
    await control.context.database.client.execute("UPDATE users SET role = 'admin'");
    expect((await put({ name: 'Renamed', saml: { domains: ['acme.test'] } })).status).toBe(200);
    const others = [
      null,
      { domains: [] },
      { metadata: sampleMetadata(IDP, SSO, [otherKey]), domains: ['acme.test'] },
      { metadata: sampleMetadata(IDP, 'https://evil.test/', [key]), domains: ['acme.test'] },
    ];
    for (const saml of others) expect(await errorOf(await put({ saml }))).toMatchObject({ code: 'admin_required' });
  });

  test.each([
    [
      'with oidc',
      'saml',
      { oidc: { issuer: 'https://id.acme.test', client_id: 'x', client_secret: 'x', domains: [] } },
      {},
    ],
    ['without metadata', 'saml.metadata', {}, { metadata: undefined }],
    ['with metadata twice', 'saml.metadata', {}, { metadata_url: 'https://idp.acme.test/metadata' }],
    ['with other XML', 'saml.metadata', {}, { metadata: '<x/>' }],
    ['with a document type', 'saml.metadata', {}, { metadata: '<!DOCTYPE x><x/>' }],
    ['with a document type beside a comment', 'saml.metadata', {}, { metadata: '<!-- --><!DOCTYPE x><x/>' }],
    ['with a comment that does not end', 'saml.metadata', {}, { metadata: () => `<!--${METADATA()}` }],
    [
      'with several entities',
      'saml.metadata',
      {},
      { metadata: () => `${LIST}${bareMetadata()}${bareMetadata()}</md:EntitiesDescriptor>` },
    ],
    ['with a list of no entity', 'saml.metadata', {}, { metadata: () => `${LIST}</md:EntitiesDescriptor>` }],
    [
      'with a page that is not https',
      'saml.metadata',
      {},
      { metadata: () => sampleMetadata(IDP, 'http://idp.acme.test', [key]) },
    ],
    [
      'with a page that is a script',
      'saml.metadata',
      {},
      { metadata: () => sampleMetadata(IDP, 'javascript:alert(1)', [key]) },
    ],
    ['without a certificate', 'saml.metadata', {}, { metadata: () => sampleMetadata(IDP, SSO, []) }],
    [
      'with a damaged certificate',
      'saml.metadata',
      {},
      { metadata: () => sampleMetadata(IDP, SSO, [{ ...key, certificate: 'AAAA' }]) },
    ],
    ['at a private address', 'saml.metadata_url', {}, { metadata: undefined, metadata_url: 'https://10.0.0.1/' }],
    [
      'at a URL that does not answer',
      'saml.metadata_url',
      {},
      { metadata: undefined, metadata_url: 'https://none.test/' },
    ],
  ])('are refused %s', async (_, field, more, saml: Record<string, unknown>) => {
    const made = Object.entries({ metadata: () => sampleMetadata(IDP, SSO, [key]), ...saml });
    const fields = made.map(([name, value]) => [name, typeof value === 'function' ? value() : value]);
    const input = { ...more, saml: { domains: [], ...Object.fromEntries(fields) } };
    expect(await errorOf(await put(input))).toMatchObject({ code: 'invalid_input', details: { fields: [{ field }] } });
  });

  test('refuse a certificate with a short key', async () => {
    const short = await newCertifiedKey(1024);
    const saml = { metadata: sampleMetadata(IDP, SSO, [short]), domains: [] };
    expect((await errorOf(await put({ saml }))).message).toContain('2048 bits');
  });

  test('do not lock their owner out', async () => {
    files['https://acme.test/.well-known/svc-enterprise.txt'] = enterprise.id;
    const saml = { metadata: sampleMetadata(IDP, SSO, [key]), domains: ['acme.test'] };
    expect(await errorOf(await put({ saml, sso_required: true }))).toMatchObject({ code: 'would_lock_out' });
    await withSaml();
    const alice = newBrowser();
    expect((await signIn(alice)).status).toBe(303);
    expect((await put({ saml: { domains: ['acme.test'] }, sso_required: true })).status).toBe(200);
    const other = { metadata: sampleMetadata('https://other.test', SSO, [key]), domains: ['acme.test'] };
    expect(await errorOf(await put({ saml: other, sso_required: true }, alice))).toMatchObject({
      code: 'would_lock_out',
    });
  });

  test('sign its people out when the provider is removed', async () => {
    await withSaml();
    const alice = newBrowser();
    await signIn(alice);
    expect((await alice.get('/v1/me')).status).toBe(200);
    expect((await put({})).status).toBe(200);
    expect((await alice.get('/v1/me')).status).toBe(401);
  });
});

describe('sign-in with SAML', () => {
  beforeEach(() => withSaml());

  test('starts with a request that names our addresses, and one browser', async () => {
    const [one, other] = [await begin(newBrowser()), await begin(newBrowser())];
    expect(one.request).toContain(`AssertionConsumerServiceURL="https://${HOST}/auth/${enterprise.id}/acs"`);
    expect(one.request).toContain(`<saml:Issuer>https://${HOST}/auth/${enterprise.id}/metadata</saml:Issuer>`);
    expect(one.request).toContain(`Destination="${SSO}"`);
    expect(one.of.requestId).not.toBe(other.of.requestId);
    expect(one.relayState).not.toBe(other.relayState);
  });

  test('offers metadata with the same addresses', async () => {
    const reply = await newBrowser().get(`/auth/${enterprise.id}/metadata`);
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/samlmetadata+xml']);
    const text = await reply.text();
    expect(text).toContain(`entityID="https://${HOST}/auth/${enterprise.id}/metadata"`);
    expect(text).toContain(`Location="https://${HOST}/auth/${enterprise.id}/acs"`);
    expect(text).toContain('WantAssertionsSigned="true"');
    expect((await newBrowser().get('/auth/codehost/metadata')).status).toBe(404);
  });

  test('joins accounts by an address of its domains, and adds new people as members', async () => {
    const alice = newBrowser();
    expect((await signIn(alice)).status).toBe(303);
    expect((await me(alice)).id).toBe((await me(admin)).id);
    const bob = newBrowser();
    expect((await signIn(bob, { nameId: 'bob-1', email: 'bob@acme.test' }, '_bob')).status).toBe(303);
    expect(await me(bob)).toMatchObject({ role: 'member', enterprise_id: enterprise.id, email: 'bob@acme.test' });
    const again = newBrowser();
    expect((await signIn(again, { nameId: 'bob-1', email: 'robert@acme.test' }, '_again')).status).toBe(303);
    expect((await me(again)).id).toBe((await me(bob)).id);
  });

  test('is found by the domain of an address', async () => {
    const page = await newBrowser().get('/auth/sso?email=bob@acme.test');
    expect(await page.text()).toContain(`/auth/${enterprise.id}/login`);
  });

  test('is not trusted about an address of another domain', async () => {
    const reply = await signIn(newBrowser(), { nameId: 'mallory', email: 'victim@other.test' });
    expect([reply.status, await reply.text()]).toEqual([
      403,
      expect.stringContaining('only verified addresses of its own domains'),
    ]);
  });

  test('refuses an assertion that was used, in another sign-in and in the same one', async () => {
    const { relayState, of } = await begin(newBrowser());
    const response = answer(of);
    expect((await post(enterprise.id, relayState, response)).status).toBe(303);
    const again = await post(enterprise.id, relayState, response);
    expect([again.status, await again.text()]).toEqual([502, expect.stringContaining('used already')]);
    const next = await begin(newBrowser());
    expect((await post(enterprise.id, next.relayState, response)).status).toBe(502);
  });

  test('refuses the code in another browser than the one that started', async () => {
    const started = newBrowser();
    const { relayState, of } = await begin(started);
    const received = await post(enterprise.id, relayState, answer(of));
    const location = received.headers.get('location') ?? '';
    const thief = newBrowser();
    await begin(thief);
    expect((await thief.get(location)).status).toBe(400);
    expect((await thief.get('/v1/me')).status).toBe(401);
  });

  test('refuses the code of another sign-in of the same browser, and a code that was used', async () => {
    const [one, other] = [newBrowser(), newBrowser()];
    const first = await begin(one);
    const received = await post(enterprise.id, first.relayState, answer(first.of));
    const code = new URL(received.headers.get('location') ?? '', 'https://x.test').searchParams.get('code') ?? '';
    const second = await begin(other);
    const swapped = `/auth/${enterprise.id}/callback?state=${second.relayState}&code=${code}`;
    const refused = await other.get(swapped);
    expect([refused.status, await refused.text()]).toEqual([502, expect.stringContaining('another browser')]);
    expect((await one.get(received.headers.get('location') ?? '')).status).toBe(303);
    expect((await one.get(received.headers.get('location') ?? '')).status).toBe(400);
  });

  test('reads a few responses to one sign-in, whatever they hold', async () => {
    const { relayState, of } = await begin(newBrowser());
    for (let i = 0; i < RESPONSES.most; i += 1) {
      expect((await post(enterprise.id, relayState, '<x/>')).status).toBe(502);
    }
    const over = await post(enterprise.id, relayState, answer(of));
    expect([over.status, await over.text()]).toEqual([429, expect.stringContaining('Too many attempts')]);
    expect((await signIn(newBrowser())).status).toBe(303);
  });

  test('reads as many responses of one client as it may start sign-ins', async () => {
    const begun = [await begin(newBrowser()), await begin(newBrowser()), await begin(newBrowser())];
    const [respondFirst, respondSecond, respondThird] = begun.map(({ relayState, of }) => (clientAddress: string) => {
      const redirectURL = of.acsUrl.replace(/acs$/, 'callback');
      const posted = { enterpriseId: enterprise.id, relayState, redirectURL, samlResponse: '' };
      return receiveResponse(control.context, { ...posted, clientAddress });
    });
    expect(await respondFirst?.('203.0.113.7')).toMatchObject({ error: { code: 'sign_in_failed' } });
    await control.context.database.client.execute(
      `UPDATE throttles SET count = ${CLIENT_RESPONSES.most} WHERE count = 1`,
    );
    expect(await respondSecond?.('203.0.113.7')).toMatchObject({ error: { code: 'too_many_attempts' } });
    expect(await respondThird?.('203.0.113.8')).toMatchObject({ error: { code: 'sign_in_failed' } });
  });

  test('refuses a response that answers no sign-in, and one without fields', async () => {
    const { of } = await begin(newBrowser());
    const refused = await post(enterprise.id, 'unknown', answer(of));
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('not at the provider')]);
    expect((await newBrowser().submit(`/auth/${enterprise.id}/acs`, {})).status).toBe(400);
  });

  test('refuses the assertion of another enterprise’s provider', async () => {
    const [eve, theirs] = await newEnterprise('eve@evil.test', 2);
    const saml = { metadata: sampleMetadata(IDP, SSO, [otherKey]), domains: [] };
    expect((await put({ saml }, eve)).status).toBe(200);
    const { relayState, of } = await begin(newBrowser());
    const byOther = await post(enterprise.id, relayState, answer(of, otherKey));
    expect([byOther.status, await byOther.text()]).toEqual([
      502,
      expect.stringContaining('not signed by a certificate'),
    ]);
    expect((await post(theirs.id, relayState, answer(of, otherKey))).status).toBe(400);
    const ofTheirs = await begin(newBrowser(), theirs.id);
    expect((await post(enterprise.id, ofTheirs.relayState, answer(ofTheirs.of, otherKey))).status).toBe(400);
  });

  test('refuses a code that was given before the provider changed', async () => {
    const browser = newBrowser();
    const { relayState, of } = await begin(browser);
    const received = await post(enterprise.id, relayState, answer(of));
    const metadata = sampleMetadata('https://new.test', SSO, [otherKey]);
    expect((await put({ saml: { metadata, domains: ['acme.test'] } })).status).toBe(200);
    expect((await browser.get(received.headers.get('location') ?? '')).status).toBe(502);
  });

  test('keeps the hash of an assertion after its use, and nothing about the person', async () => {
    await signIn(newBrowser());
    const { rows } = await control.context.database.client.execute('SELECT code_hash, identity FROM saml_answers');
    expect(rows.map(({ code_hash: code, identity }) => [code, identity])).toEqual([[null, null]]);
  });
});
