import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { FORUM } from '../../e2e/sign_in/example_provider.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Outbound, OutboundRequest } from '../kernel/outbound.ts';
import { SeenOutcomes } from '../kernel/seen_outcomes.ts';
import { configureSignIn } from './configure.ts';
import { HeldIssuers } from './issuer_documents.ts';
import { configureProviders } from './provider_table.ts';

const silent: Outbound = { call: async () => Promise.reject(new Error('nothing is called to set a provider up')) };
const variables = (given: Record<string, string>) =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, new Secret(value)]));
const configure = (given: Record<string, string>, isLocal = false) =>
  configureProviders({ variables: variables(given), outbound: silent, isLocal, issuers: new HeldIssuers(Date) });
const CLIENT = { GENERAL_OAUTH_CLIENT_ID: 'client', GENERAL_OAUTH_CLIENT_SECRET: 'planted-secret' };

describe('the configured providers', () => {
  test('are those whose variables are set', () => {
    expect(configure({})).toMatchObject({ ok: true, value: new Map() });
    const both = configure({
      ...CLIENT,
      GENERAL_OAUTH_ISSUER: 'https://id.example.com',
      CODEHOST_OAUTH_CLIENT_ID: 'c',
      CODEHOST_OAUTH_CLIENT_SECRET: 's',
    });
    expect(both.ok && [...both.value.keys()]).toEqual(['general', 'codehost']);
  });

  test.each([
    ['GENERAL_OAUTH_CLIENT_SECRET', { GENERAL_OAUTH_CLIENT_ID: 'client' }],
    ['GENERAL_OAUTH_CLIENT_ID', { GENERAL_OAUTH_CLIENT_SECRET: 'planted-secret' }],
    ['GENERAL_OAUTH_ISSUER', CLIENT],
    ['GENERAL_OAUTH_ISSUER', { ...CLIENT, GENERAL_OAUTH_ISSUER: 'http://id.example.com' }],
    ['GENERAL_OAUTH_ISSUER', { ...CLIENT, GENERAL_OAUTH_ISSUER: 'http://127.0.0.1:8080' }],
    ['GENERAL_OAUTH_ISSUER', { ...CLIENT, GENERAL_OAUTH_ISSUER: 'https://u:p@id.example.com' }],
    [
      'CODEHOST_OAUTH_URL',
      { CODEHOST_OAUTH_CLIENT_ID: 'c', CODEHOST_OAUTH_CLIENT_SECRET: 's', CODEHOST_OAUTH_URL: 'x' },
    ],
  ])('are refused by the name of the variable %s, without quoting its value', (name, given) => {
    const refused = configure(given);
    expect(refused).toMatchObject({ ok: false, error: expect.stringContaining(name) });
    expect(JSON.stringify(refused)).not.toContain('planted-secret');
  });

  test.each<[Awaited<ReturnType<Outbound['call']>>, string | null]>([
    [err({ reason: 'upstream_unreachable', message: 'nobody answers' }), 'it could not be reached'],
    [ok({ status: 503, contentType: '', body: new Uint8Array() }), 'it answered with status 503'],
    [ok({ status: 401, contentType: '', body: new Uint8Array() }), null],
  ])('of code hosting have it noted how a call went', async (answer, problem) => {
    const outcomes = new SeenOutcomes();
    const configured = configureProviders({
      variables: variables({ CODEHOST_OAUTH_CLIENT_ID: 'c', CODEHOST_OAUTH_CLIENT_SECRET: 's' }),
      outbound: { call: async () => answer },
      isLocal: false,
      issuers: new HeldIssuers(Date, outcomes),
    });
    const provider = configured.ok ? configured.value.get('codehost') : undefined;
    const redirectURL = 'https://control.example.com/auth/codehost/callback';
    const callback = { code: 'c', state: 's', redirectURL, extraState: 'v'.repeat(43), issuer: null };
    expect((await provider?.exchange(callback))?.ok).toBe(false);
    expect(outcomes.of('codehost')?.problem).toBe(problem);
  });

  test('may be on loopback in local mode', () => {
    expect(configure({ ...CLIENT, GENERAL_OAUTH_ISSUER: 'http://127.0.0.1:8080' }, true).ok).toBe(true);
  });
});

describe('a hosted control plane', () => {
  const settings = {
    allowedHosts: [],
    providerVariables: variables({ CODEHOST_OAUTH_CLIENT_ID: 'c', CODEHOST_OAUTH_CLIENT_SECRET: 's' }),
    mail: null,
  };
  const publicUrl = 'https://control.example.com';
  const parts = { outbound: silent, isLocal: false, printMail: () => undefined, publicUrl, clock: Date };

  test("has the names that are set, otherwise its public URL's, and a local one none but loopback", () => {
    const cases: readonly [readonly string[], boolean, readonly string[]][] = [
      [[], false, ['control.example.com']],
      [['other.example.com'], false, ['other.example.com']],
      [[], true, []],
    ];
    for (const [given, isLocal, allowedHosts] of cases) {
      const set = configureSignIn({ ...settings, allowedHosts: given }, { ...parts, isLocal });
      expect(set).toMatchObject({ ok: true, value: { allowedHosts } });
    }
  });

  test('does not start with sign-in but without the origin for links', () => {
    const named = { ...settings, allowedHosts: ['control.example.com'] };
    expect(configureSignIn(named, { ...parts, publicUrl: null })).toMatchObject({
      ok: false,
      error: expect.stringContaining('SVC_PUBLIC_URL'),
    });
    expect(configureSignIn({ ...named, providerVariables: {} }, { ...parts, publicUrl: null }).ok).toBe(true);
  });

  test('does not print mail', () => {
    const set = configureSignIn({ ...settings, allowedHosts: ['control.example.com'] }, parts);
    expect(set).toMatchObject({ ok: true, value: { mail: null } });
  });

  test.each([
    ['SVC_MAIL_TOKEN', { token: null, from: 'svc@example.com' }],
    ['SVC_MAIL_FROM', { token: new Secret('t'), from: null }],
  ])('needs %s for its mail', (name, more) => {
    const mail = { url: 'https://mail.example.com/send', ...more };
    expect(configureSignIn({ ...settings, mail }, parts)).toMatchObject({
      ok: false,
      error: expect.stringContaining(name),
    });
  });

  test('posts its mail to the service, and reports if that fails', async () => {
    const posted: OutboundRequest[] = [];
    let status = 202;
    const outbound: Outbound = {
      async call(request) {
        posted.push(request);
        return ok({ status, contentType: 'application/json', body: new Uint8Array() });
      },
    };
    const mail = { url: 'https://mail.example.com/send', token: new Secret('mail-token'), from: 'svc@example.com' };
    const set = configureSignIn({ ...settings, allowedHosts: ['control.example.com'], mail }, { ...parts, outbound });
    const message = { to: 'alice@acme.test', subject: 'Subject', text: 'Text' };
    expect(set.ok && (await set.value.mail?.send(message))).toEqual(ok(undefined));
    expect(posted[0]).toMatchObject({ url: mail.url, headers: { authorization: 'Bearer mail-token' } });
    expect(JSON.parse(new TextDecoder().decode(posted[0]?.body ?? undefined))).toEqual({
      ...message,
      to: ['alice@acme.test'],
      from: 'svc@example.com',
    });
    status = 500;
    expect(set.ok && (await set.value.mail?.send(message))).toMatchObject({ ok: false });
  });
});

describe('a new provider', () => {
  const forum: Outbound = {
    async call({ url, headers }) {
      const isMe = url.endsWith('/me') && headers['authorization'] === 'Bearer token';
      const reply = isMe
        ? { uid: 'u1', mail: 'Alice@acme.test', mail_confirmed: true, nick: 'alice' }
        : { access_token: 'token', token_type: 'bearer' };
      return ok({
        status: 200,
        contentType: 'application/json',
        body: new TextEncoder().encode(JSON.stringify(reply)),
      });
    },
  };

  test('takes one file and one entry in the table', async () => {
    const given = variables({ FORUM_OAUTH_CLIENT_ID: 'c', FORUM_OAUTH_CLIENT_SECRET: 's' });
    const set = configureProviders(
      { variables: given, outbound: forum, isLocal: false, issuers: new HeldIssuers(Date) },
      [FORUM],
    );
    const provider = set.ok ? set.value.get('forum') : undefined;
    const redirectURL = 'https://control.example.com/auth/forum/callback';
    const begun = await provider?.authorizationURL({ state: 'state', redirectURL });
    expect(begun).toMatchObject({ ok: true, value: { url: expect.stringContaining('state=state'), extraState: '' } });
    const callback = { code: 'code', state: 'state', redirectURL, extraState: '', issuer: null };
    expect(await provider?.exchange(callback)).toEqual(
      ok({
        issuer: 'https://forum.example.com',
        subject: 'u1',
        email: 'Alice@acme.test',
        emailVerified: true,
        displayName: 'alice',
      }),
    );
  });

  test('is in the guide exactly as here', () => {
    const guide = readFileSync(new URL('../../docs/sign-in.md', import.meta.url), 'utf8');
    const example = readFileSync(new URL('../../e2e/sign_in/example_provider.ts', import.meta.url), 'utf8');
    expect(guide).toContain(example.slice(example.indexOf('const SITE')));
  });
});
