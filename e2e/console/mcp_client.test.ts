import { createServer, type Server } from 'node:http';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mcpClientRegistered, mcpTokens } from '../../shared/wire/mcp/mcp_clients.ts';
import { pkce } from '../mcp/remote_world.ts';
import { type BrowserWorld, startBrowserWorld } from '../sign_in/browser_world.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { HANGS_MS } from '../support/hangs.ts';
import { listen } from '../support/tls_upstream.ts';
import { expectAccessible, expectFits, LOOKS } from './console_world.ts';

// A person connects an MCP client, a program on the same computer, in a real browser, and disconnects it.

const MISSING = chromiumProblem();
let world: BrowserWorld;
let program: Server;
let port: number;
/** What the program has received at its redirect URI. */
let answers: URL[] = [];
let pages: Page[] = [];

beforeAll(async () => {
  if (MISSING !== null) return;
  world = await startBrowserWorld();
  program = createServer((request, response) => {
    const url = new URL(request.url ?? '/', `http://127.0.0.1:${port}`);
    if (url.pathname === '/callback') {
      answers.push(url);
      // Many clients go on to another origin, such as that of an app.
      response.writeHead(302, { location: `http://localhost:${port}/done` }).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/plain' }).end('You can close this window.');
  });
  port = await listen(program);
});
afterAll(async () => {
  program?.close();
  await world?.stop();
});
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
  answers = [];
});
afterEach(async () => {
  for (const page of pages) await page.context().close();
  pages = [];
});

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await world.chromium.newContext({
    baseURL: world.origin,
    reducedMotion: 'reduce',
    ignoreHTTPSErrors: true,
    ...options,
  });
  context.setDefaultTimeout(HANGS_MS);
  const page = await context.newPage();
  pages.push(page);
  return page;
}

/** The program registers itself and asks for a code. */
async function ask(page: Page) {
  const data = { client_name: 'Desk', redirect_uris: ['http://127.0.0.1/callback'] };
  const registration = await page.request.post('/oauth/register', { data });
  const { client_id: clientId } = mcpClientRegistered.parse(await registration.json());
  const { verifier, challenge } = await pkce();
  const redirectUri = `http://127.0.0.1:${port}/callback`;
  const url = new URL('/oauth/authorize', world.origin);
  const fields = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    resource: `${world.origin}/mcp`,
    state: 'a&b c',
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  const redeem = async () => {
    const code = answers.at(-1)?.searchParams.get('code') ?? '';
    const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, client_id: clientId };
    const reply = await page.request.post('/oauth/token', { form: { ...form, code_verifier: verifier } });
    return mcpTokens.parse(await reply.json());
  };
  return { url: url.href, redeem };
}

const listTools = async (page: Page, token: string) => {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' };
  const data = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  return (await page.request.post('/mcp', { headers, data })).status();
};

async function signIn(page: Page): Promise<void> {
  world.openId.person = { sub: 'pat', email: 'pat@acme.test', email_verified: true, name: 'pat' };
  await page.getByRole('link', { name: 'Continue with Single sign-on' }).click();
}

describe.each([true, false])('with scripts: %s', (javaScriptEnabled) => {
  test('a person signs in, comes back to the question, connects the program, and disconnects it', async () => {
    const page = await open({ javaScriptEnabled });
    const { url, redeem } = await ask(page);
    await page.goto(url);
    await signIn(page);
    await page.getByRole('heading', { name: 'Connect this MCP client?' }).waitFor();
    const shown = await page.locator('main').innerText();
    for (const part of ['Desk', `127.0.0.1:${port}`, 'a program on this computer']) expect(shown).toContain(part);
    await page.getByRole('button', { name: 'Connect it' }).click();
    await page.getByText('You can close this window.').waitFor();
    const [answer] = answers;
    expect([answer?.searchParams.get('state'), answer?.searchParams.get('iss')]).toEqual(['a&b c', world.origin]);
    const { access_token: token } = await redeem();
    expect(await listTools(page, token)).toBe(200);

    await page.goto('/account');
    await page.getByRole('link', { name: 'Disconnect Desk' }).click();
    if (javaScriptEnabled) await expectAccessible(page);
    await page.getByRole('button', { name: 'Disconnect it' }).click();
    await page.getByText('The client is disconnected').waitFor();
    expect(await listTools(page, token)).toBe(401);
  });
});

test('a person denies it, and the program gets no code', async () => {
  const page = await open();
  const { url } = await ask(page);
  await page.goto(url);
  await signIn(page);
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('You can close this window.').waitFor();
  expect(answers.map((each) => [each.searchParams.get('error'), each.searchParams.has('code')])).toEqual([
    ['access_denied', false],
  ]);
});

test('another site can neither frame the question nor answer it', async () => {
  const page = await open();
  const { url } = await ask(page);
  await page.goto(url);
  await signIn(page);
  await page.getByRole('button', { name: 'Connect it' }).waitFor();
  const other = await page.context().newPage();
  await other.goto(`http://127.0.0.1:${port}/other`);
  await other.setContent(`<iframe src="${url.replaceAll('&', '&amp;')}"></iframe>
    <form method="post" action="${url.replaceAll('&', '&amp;')}"><button name="decision" value="connect">Win</button></form>`);
  expect(await other.frameLocator('iframe').getByRole('button', { name: 'Connect it' }).count()).toBe(0);
  answers = [];
  await other.getByRole('button', { name: 'Win' }).click();
  await other.waitForURL(`${world.origin}/**`);
  expect(await other.locator('body').innerText()).not.toContain('You can close this window.');
  expect(answers).toEqual([]);
});

test.each(LOOKS)('the question is accessible and fits: $width $colorScheme', async ({ width, colorScheme }) => {
  const page = await open({ viewport: { width, height: 900 }, colorScheme });
  const { url } = await ask(page);
  await page.goto(url);
  await signIn(page);
  await page.getByRole('button', { name: 'Connect it' }).waitFor();
  await expectAccessible(page);
  await expectFits(page);
});
