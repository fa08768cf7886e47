import { createServer, request as httpRequest, type RequestListener, Server } from 'node:http';
import { serve } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Browser } from 'playwright-core';
import { z } from 'zod';
import { Secret } from '../../shared/model/secret.ts';
import { createApp } from '../../worker/app.ts';
import { fileAssets } from '../../worker/entries/file_assets.ts';
import { clientAddress } from '../../worker/entries/client_address.ts';
import type { StartInput } from '../../worker/installation/start.ts';
import { type InProcess, startInProcess } from '../runtimes/in_process.ts';
import { startChromium } from '../support/chromium.ts';
import { createTestCa, type TestCa } from '../support/test_ca.ts';
import { startTlsFront, type TlsFront } from '../support/tls_front.ts';
import { listen } from '../support/tls_upstream.ts';
import { type CodeHost, startCodeHost } from './code_host.ts';
import { providerVariables } from './hosted_sign_in.ts';
import { forwardedHeaders, namedOutbound } from './named_outbound.ts';
import { OPENID_CLIENT_ID, OPENID_CLIENT_SECRET, type OpenIdProvider, startOpenIdProvider } from './openid_provider.ts';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';

const OPENID_HOST = 'id.acme.test';
const CODE_HOST = 'code.acme.test';
/** Also leads to the control plane, but is not configured there. */
const STRANGE_HOST = 'strange.acme.test';
const MAIL_HOST = 'mail.acme.test';
const MAIL_TOKEN = 'mail-token-of-a-test';

/** A hosted control plane on Node behind a TLS proxy, its providers on their own sites, and a browser. */
export interface BrowserWorld {
  /** The control plane's origin. */
  readonly origin: string;
  readonly ca: TestCa;
  readonly chromium: Browser;
  readonly openId: OpenIdProvider;
  readonly codeHost: CodeHost;
  /** The control plane under a name that is not configured. */
  readonly strangeOrigin: string;
  /** Changes the URL that the OpenID provider redirects to; null for no change. */
  alterReturn: ((back: URL) => void) | null;
  /** The code of the newest mail to an address. */
  codeFor(address: string): string;
  stop(): Promise<void>;
}

/** `sites`: further hosts that the control plane can call, with their addresses. */
export async function startBrowserWorld(sites: Readonly<Record<string, string>> = {}): Promise<BrowserWorld> {
  const ca = await createTestCa();
  const certificate = await ca.issue(['localhost', OPENID_HOST, CODE_HOST, STRANGE_HOST]);
  const front = await startTlsFront(certificate);
  const origin = `https://localhost:${front.port}`;
  const openId = await startOpenIdProvider(OPENID_HOST, [`${origin}/auth/general/callback`]);
  const codeHost = await startCodeHost();
  const mails = await startMailSink();
  const control = await startHostedControl(front, {
    publicUrl: origin,
    outbound: namedOutbound({
      ...sites,
      [OPENID_HOST]: openId.loopback,
      [CODE_HOST]: codeHost.loopback,
      [MAIL_HOST]: mails.loopback,
    }),
    signIn: {
      allowedHosts: [`localhost:${front.port}`],
      providerVariables: providerVariables(CODE_HOST, {
        GENERAL_OAUTH_ISSUER: openId.origin,
        GENERAL_OAUTH_CLIENT_ID: OPENID_CLIENT_ID,
        GENERAL_OAUTH_CLIENT_SECRET: OPENID_CLIENT_SECRET,
      }),
      mail: { url: `https://${MAIL_HOST}/send`, token: new Secret(MAIL_TOKEN), from: 'svc@acme.test' },
    },
  });
  front.route(CODE_HOST, consent(codeHost));
  const names = { [OPENID_HOST]: front.port, [CODE_HOST]: front.port, [STRANGE_HOST]: front.port };
  const chromium = await startChromium({ certificate: certificate.cert, names });
  const parts = [front, control, mails, openId, codeHost];
  const stop = async () => {
    await chromium.close();
    for (const part of parts) await part.stop();
  };
  const world: BrowserWorld = {
    origin,
    ca,
    chromium,
    openId,
    codeHost,
    strangeOrigin: `https://${STRANGE_HOST}`,
    alterReturn: null,
    codeFor: mails.codeFor,
    stop,
  };
  front.route(
    OPENID_HOST,
    sentBack(openId.loopback, (back) => {
      if (back.origin === origin) world.alterReturn?.(back);
    }),
  );
  return world;
}

/** The OpenID provider, behind a proxy that can change its redirects. */
function sentBack(loopback: string, alter: (back: URL) => void): RequestListener {
  return (request, response) => {
    const headers = { ...request.headers, ...forwardedHeaders(OPENID_HOST) };
    const options = { method: request.method ?? 'GET', headers, agent: false };
    const passed = httpRequest(loopback + (request.url ?? '/'), options, (reply) => {
      const location = reply.headers.location;
      const back = location === undefined ? null : new URL(location, `https://${OPENID_HOST}`);
      if (back !== null) alter(back);
      response.writeHead(reply.statusCode ?? 502, { ...reply.headers, ...(back !== null && { location: back.href }) });
      reply.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  };
}

/** The app as the Node entry serves it, except that its providers are on loopback. */
async function startHostedControl(front: TlsFront, input: Partial<StartInput>): Promise<InProcess> {
  const control = await startInProcess({ localKey: null, clock: SYSTEM_CLOCK, ...input });
  const app = createApp({
    context: () => control.context,
    assets: fileAssets(),
    log: () => undefined,
    clientAddress: (c) => clientAddress(getConnInfo(c).remote.address ?? null, c.req.header('x-forwarded-for')),
  });
  const { server, port } = await new Promise<{ server: ReturnType<typeof serve>; port: number }>((resolve) => {
    const made = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (at) =>
      resolve({ server: made, port: at.port }),
    );
  });
  for (const name of ['localhost', STRANGE_HOST]) front.route(name, `http://127.0.0.1:${port}`);
  const stop = async () => {
    if (server instanceof Server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await control.stop();
  };
  return { ...control, stop };
}

/** The code host's page, where its user agrees. */
function consent(codeHost: CodeHost): RequestListener {
  return (request, response) => {
    const url = new URL(request.url ?? '/', `https://${CODE_HOST}`);
    if (url.pathname === '/login/oauth/authorize') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'referrer-policy': 'no-referrer' });
      const agreed = `/agreed?${url.searchParams.toString()}`.replaceAll('&', '&amp;');
      response.end(`<!doctype html><title>Code host</title><a href="${agreed}">Authorize</a>`);
    } else if (url.pathname === '/agreed') {
      response.writeHead(302, { location: codeHost.authorise(url.href).href }).end();
    } else {
      response.writeHead(404).end();
    }
  };
}

const mail = z.object({ to: z.tuple([z.string()]), text: z.string() });

/** Receives mail like a mail service, and delivers it to the test. */
async function startMailSink() {
  const texts = new Map<string, string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const isOurs = request.headers.authorization === `Bearer ${MAIL_TOKEN}`;
      const { to, text } = mail.parse(JSON.parse(Buffer.concat(chunks).toString()));
      if (isOurs) texts.set(to[0], text);
      response.writeHead(isOurs ? 202 : 401).end();
    });
  });
  const loopback = `http://127.0.0.1:${await listen(server)}`;
  const codeFor = (address: string) => {
    const code = /\b\d{8}\b/.exec(texts.get(address) ?? '')?.[0];
    if (code === undefined) throw new Error(`no mail with a code came to ${address}`);
    return code;
  };
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { loopback, codeFor, stop };
}
