import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Agent, request } from 'undici';
import { meReply } from '../../shared/wire/account.ts';
import { newCertifiedKey, type SamlKey } from '../sign_in/saml_samples.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { IS_FULL } from '../support/full_counts.ts';
import { Person } from './person.ts';
import {
  IDP_HOST,
  IDP_METADATA,
  simpleSamlPhpProblem,
  startSimpleSamlPhp,
  type SimpleSamlPhp,
} from './simplesamlphp.ts';
import { startHostedOnDeno, startHostedOnNode, startHostedOnWorkerd, type StartHosted } from './team_runtimes.ts';
import { DOMAIN, startTeamWorld, type TeamWorld } from './team_world.ts';

// Issue 19: SAML 2.0 with SimpleSAMLphp as the identity provider, a hosted control plane, and people in a real browser.

const MISSING = chromiumProblem() ?? simpleSamlPhpProblem();
const RUNTIMES = { workerd: startHostedOnWorkerd, Node: startHostedOnNode, Deno: startHostedOnDeno };
const PASSWORD = 'correct horse battery';
const SETTINGS_SAVED = '**/enterprise?done=settings_changed';

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
const TRANSIENT_FORMAT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
const RSA_SHA512 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512';

const ENCRYPTION_REFUSED = 'turn off the encryption of assertions, NameIDs and attributes at the provider';

const OBJECT_IDENTIFIERS = {
  class: 'core:AttributeMap',
  mail: 'urn:oid:0.9.2342.19200300.100.1.3',
  displayName: 'urn:oid:2.16.840.1.113730.3.1.241',
};

const account = (uid: string, mail: readonly string[], displayName: string) => ({
  password: PASSWORD,
  attributes: { uid: [uid], mail, displayName: [displayName] },
});

/** The accounts at the provider. */
const ACCOUNTS = {
  fay: account('f1', [`fay@${DOMAIN}`], 'Fay'),
  pat: account('p1', [`pat@${DOMAIN}`], 'Pat Peterson'),
  mallory: account('m1', ['mallory@other.test'], 'Mallory'),
  noaddress: account('n1', [], 'Nobody'),
  addresses: account('a1', [`pat@${DOMAIN}`, `fay@${DOMAIN}`], 'Several'),
};
const PLAIN = { accounts: ACCOUNTS, idp: {}, sp: {} };

/** From our page with the ways to sign in to the provider; it answers at once for a person whom it knows. */
async function comeAgain(person: Person, email = `pat@${DOMAIN}`): Promise<void> {
  await person.visit('/');
  await person.page.locator('form[action="/auth/sso"] input[name="email"]').fill(email);
  await person.page.getByRole('button', { name: 'Find its sign-in' }).click();
  await person.page.getByRole('link', { name: /^Continue with/ }).click();
  await person.page.waitForURL(({ pathname }) => pathname !== '/auth/sso');
}

async function typePassword({ page }: Person, username: string, password = PASSWORD): Promise<void> {
  await page.waitForURL(`https://${IDP_HOST}/**`);
  await page.locator('[name="username"]').fill(username);
  await page.locator('[name="password"]').fill(password);
  await page.getByRole('button', { name: 'Login' }).click();
}

async function whoIs({ page }: Person) {
  await page.goto('/v1/me');
  return meReply.parse(JSON.parse(await page.locator('body').innerText()));
}

for (const [runtime, start] of Object.entries(RUNTIMES).slice(0, IS_FULL ? undefined : 1)) {
  describe(`SAML by SimpleSAMLphp on ${runtime}`, () => {
    describeSaml(start);
  });
}

function describeSaml(start: StartHosted): void {
  let provider: SimpleSamlPhp;
  let world: TeamWorld;
  let founder: Person;
  let enterpriseId = '';
  let keys: readonly [SamlKey, SamlKey, SamlKey];
  let people: Person[] = [];

  beforeAll(async () => {
    if (MISSING !== null) return;
    keys = await Promise.all([newCertifiedKey(), newCertifiedKey(), newCertifiedKey()]);
    provider = await startSimpleSamlPhp();
    await provider.configure(PLAIN);
    await provider.useKeys(keys[0]);
    world = await startTeamWorld(start, { [IDP_HOST]: provider.loopback });
    founder = await Person.at(world, 'Fay');
    await founder.visit('/');
    await founder.signIn();
  });
  afterAll(async () => {
    await world?.stop();
    await provider?.stop();
  });
  beforeEach(({ skip }) => {
    if (MISSING !== null) skip(MISSING);
  });
  afterEach(async () => {
    for (const { page } of people) await page.context().close();
    people = [];
  });

  /** A browser at the provider's page, where it came from ours by the address of its person. */
  async function goToProvider(email = `pat@${DOMAIN}`): Promise<Person> {
    const person = await Person.at(world, 'Pat');
    people.push(person);
    await comeAgain(person, email);
    return person;
  }

  async function enter(username: string, email = `${username}@${DOMAIN}`): Promise<Person> {
    const person = await goToProvider(email);
    await typePassword(person, username);
    await textOfOurs(person);
    return person;
  }

  /** Signs in at the provider; returns what our page says then. */
  const signIn = async (username: string) => textOfOurs(await enter(username));

  async function textOfOurs({ page }: Person): Promise<string> {
    await page.waitForURL(`${world.origin}/**`);
    return page.locator('body').innerText();
  }

  const readMetadata = async () => {
    await founder.visit('/enterprise');
    return founder.submit('Save the settings', { 'SAML metadata URL': IDP_METADATA, 'SAML domains': DOMAIN });
  };

  async function certificates(): Promise<number> {
    await founder.visit('/enterprise');
    return ((await founder.text()).match(/\b[0-9a-f]{64}\b/g) ?? []).length;
  }

  test('the provider and the enterprise read each other’s metadata', async () => {
    await founder.visit('/enterprise');
    enterpriseId = /ent_\w{26}/.exec(await founder.text())?.[0] ?? '';
    world.domain.proof = enterpriseId;
    expect(await readMetadata()).toContain(IDP_METADATA);
    await founder.page.waitForURL(SETTINGS_SAVED);
    expect(await certificates()).toBe(1);
    const dispatcher = new Agent({ connect: { ca: world.ca.pem } });
    const ours = await request(`${world.origin}/auth/${enterpriseId}/metadata`, { dispatcher });
    await provider.importMetadata(await ours.body.text());
    await dispatcher.close();
  });

  test('a new person signs in from our page, after a wrong password', async () => {
    const pat = await goToProvider();
    await typePassword(pat, 'pat', 'wrong');
    await pat.page.getByText('Incorrect username or password').waitFor();
    expect(new URL(pat.page.url()).host).toBe(IDP_HOST);
    await typePassword(pat, 'pat');
    expect(await textOfOurs(pat)).toContain('Signed in as Pat Peterson');
    const me = { email: `pat@${DOMAIN}`, display_name: 'Pat Peterson', role: 'member', enterprise_id: enterpriseId };
    expect(await whoIs(pat)).toMatchObject(me);
  });

  test('signing out ends our session and not that of the provider, which asks for no password then', async () => {
    const pat = await enter('pat');
    const { id } = await whoIs(pat);
    await pat.visit('/');
    await pat.page.getByRole('button', { name: 'Sign out' }).first().click();
    await pat.page.waitForURL('**/sign-in*');
    expect((await pat.visit('/')).status).toBe(401);
    await comeAgain(pat);
    expect(await textOfOurs(pat)).toContain('Signed in as Pat Peterson');
    expect((await whoIs(pat)).id).toBe(id);
  });

  test('the owner signs in to the account that another provider gave', async () => {
    expect(await whoIs(await enter('fay'))).toMatchObject({ id: (await whoIs(founder)).id, role: 'owner' });
  });

  test.each([
    ['an address of another domain', 'mallory', 'only verified addresses of its own domains'],
    ['no address', 'noaddress', 'has no single email address'],
    ['two addresses', 'addresses', 'has no single email address'],
  ])('a person with %s is refused', async (_, username, message) => {
    expect(await signIn(username)).toContain(message);
  });

  test('a sign-in that begins at the provider is refused', async () => {
    const person = await Person.at(world, 'Pat');
    people.push(person);
    const query = new URLSearchParams({ spentityid: `${world.origin}/auth/${enterpriseId}/metadata` });
    await person.page.goto(`https://${IDP_HOST}/saml2/idp/SSOService.php?${query.toString()}`);
    await typePassword(person, 'pat');
    expect(await textOfOurs(person)).toContain('start at the sign-in page, not at the provider');
    expect((await person.visit('/')).status).toBe(401);
  });

  test.each([
    ['signs only the assertion', { 'saml20.sign.response': false }],
    ['signs assertion and response with SHA-512', { 'signature.algorithm': RSA_SHA512 }],
    ['names people by their address', { NameIDFormat: EMAIL_FORMAT, 'simplesaml.nameidattribute': 'mail' }],
    ['names attributes by object identifiers', { authproc: { 50: OBJECT_IDENTIFIERS } }],
  ])('a provider that %s is understood', async (_, sp) => {
    await provider.configure({ ...PLAIN, sp });
    expect(await signIn('pat')).toContain('Signed in as Pat Peterson');
  });

  test.each([
    ['signs only the response', { 'saml20.sign.assertion': false }, 'has no signature on the assertion itself'],
    ['signs nothing', { 'saml20.sign.assertion': false, 'saml20.sign.response': false }, 'has no signature'],
    [
      'signs with SHA-1',
      { 'signature.algorithm': 'http://www.w3.org/2000/09/xmldsig#rsa-sha1' },
      'that is not allowed',
    ],
    ['encrypts assertions', { 'assertion.encryption': true }, ENCRYPTION_REFUSED],
    ['encrypts NameIDs', { 'nameid.encryption': true }, ENCRYPTION_REFUSED],
    ['names people by transient ids', { NameIDFormat: TRANSIENT_FORMAT }, 'choose a persistent one'],
  ])('a provider that %s is refused', async (_, sp, message) => {
    const ours = { type: 'X509Certificate', encryption: true, X509Certificate: keys[2].certificate };
    await provider.configure({ ...PLAIN, sp: { ...sp, keys: [ours] } });
    expect(await signIn('pat')).toContain(message);
  });

  test('the provider’s key is replaced without a pause, if the metadata are read while they list both', async () => {
    await provider.configure(PLAIN);
    await provider.useKeys(keys[0], keys[1]);
    await readMetadata();
    expect(await certificates()).toBe(2);
    expect(await signIn('pat')).toContain('Signed in as Pat Peterson');
    await provider.useKeys(keys[1]);
    expect(await signIn('pat')).toContain('Signed in as Pat Peterson');
  });

  test('a key that came without notice is refused until an owner reads the metadata again', async () => {
    await provider.useKeys(keys[2]);
    expect(await signIn('pat')).toContain('import its metadata again if the certificate changed');
    await readMetadata();
    expect(await certificates()).toBe(1);
    expect(await signIn('pat')).toContain('Signed in as Pat Peterson');
    await provider.useKeys(keys[0]);
    expect(await signIn('pat')).toContain('is not signed by a certificate');
  });
}
