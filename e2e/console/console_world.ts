import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import { z } from 'zod';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { APPROVAL_KNOWS_HEADER, APPROVAL_KNOWS_VIEWS, type ShownRequest } from '../../shared/wire/approval_views.ts';
import { approvalPayload, approvalRecord } from '../../shared/wire/approvals.ts';
import { APPROVAL_TYP, EVENTS_TYP, eventsPayload } from '../../shared/wire/channel.ts';
import { newId } from '../../shared/wire/ids.ts';
import { sealView } from '../../sidecar/control/seal_view.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { type ControlPlaneUnderTest, ROOT, startOnNode } from '../runtimes/programs.ts';
import { TestSidecar } from '../runtimes/sidecar_client.ts';
import { startChromium } from '../support/chromium.ts';
import { fetchAs, type SentAs } from '../support/fetch_as.ts';
import { axeProblems } from './page_walk.ts';
import { HANGS_MS } from '../support/hangs.ts';

/** A value in the vault that must appear on no page. */
export const PLANTED_SECRET = 'planted-a7f3c1e95d2b4086';

/** The widths and colour schemes in which every page is checked. */
export const LOOKS = [
  { width: 360, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 1440, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
] as const;
export type Look = (typeof LOOKS)[number];

const HEIGHT = 900;
const created = z.object({ id: z.string() });

/** What a page can be asked for by. */
export interface Seeded {
  readonly bindingId: string;
  readonly tunnelHostId: string;
  readonly clientCertificateId: string;
  readonly connectorId: string;
  readonly eventId: string;
}

/** A control plane in local mode, a sidecar that reports to it, and a browser that is signed in by its link. */
export class ConsoleWorld {
  readonly control: ControlPlaneUnderTest;
  /** The console's address in a browser: its own host name. */
  readonly consoleUrl: string;
  readonly sidecar: TestSidecar;
  readonly #browser: Browser;

  private constructor(control: ControlPlaneUnderTest, consoleUrl: string, browser: Browser, sidecar: TestSidecar) {
    this.control = control;
    this.consoleUrl = consoleUrl;
    this.#browser = browser;
    this.sidecar = sidecar;
  }

  static async start(control?: ControlPlaneUnderTest, now = Date.now): Promise<ConsoleWorld> {
    const plane = control ?? (await startOnNode());
    const sidecar = await TestSidecar.make((path, init) => fetch(plane.url + path, init), 'X25519', now);
    return new ConsoleWorld(plane, await findConsole(plane), await startChromium(), sidecar);
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    await this.control.stop();
  }

  /** A request by the console's name from another program of this machine: only browsers resolve that name. */
  send(path: string, sent: SentAs = {}): Promise<Response> {
    return fetchAs(new URL(this.consoleUrl).host, this.control.url + path, sent);
  }

  /** Calls the control API as the local user; throws if it refuses. */
  async api(method: string, path: string, body?: unknown): Promise<unknown> {
    const headers = { authorization: `Bearer ${this.control.localKey}`, 'content-type': 'application/json' };
    const reply = await fetch(this.control.url + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path} was answered with ${reply.status}: ${text}`);
    return text === '' ? null : JSON.parse(text);
  }

  /** A signed-in browser tab with its own cookies. */
  async open(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.openSignedOut(options);
    const { url } = signInLinkReply.parse(await this.api('POST', '/v1/sign-in-links'));
    await page.goto(url);
    return page;
  }

  async openSignedOut(options: BrowserContextOptions = {}): Promise<Page> {
    const viewport = { width: 1440, height: HEIGHT };
    const context = await this.#browser.newContext({
      baseURL: this.consoleUrl,
      viewport,
      reducedMotion: 'reduce',
      ...options,
    });
    context.setDefaultTimeout(HANGS_MS);
    return context.newPage();
  }

  /** A secret, a binding, a connector with an approval that waits, and requests of an agent. */
  async seed(): Promise<Seeded> {
    await this.api('POST', '/v1/secrets', { path: 'user/github', value: PLANTED_SECRET, description: 'Build agent' });
    const binding = { host: 'api.github.com', scheme: 'bearer', credential_ref: 'vault://user/github', effect: 'read' };
    const { id: bindingId } = created.parse(await this.api('POST', '/v1/host-bindings', binding));
    const listed = await this.api('POST', '/v1/tunnel-hosts', { host: 'pinned.example.test' });
    const { id: tunnelHostId } = created.parse(listed);
    const certificate = { host: 'mtls.example.test', credential_ref: 'vault://user/github' };
    const { id: clientCertificateId } = created.parse(await this.api('POST', '/v1/client-certificates', certificate));
    await this.sidecar.enrol(this.control.localKey);
    const eventId = await this.record('sandbox.proxy.binding_injected', {
      'svc.proxy.mediation': 'binding',
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': 'api.github.com',
      'svc.proxy.upstream.path': '/user',
      'svc.proxy.upstream.status': 200,
      'svc.proxy.binding.host': 'api.github.com',
      'svc.proxy.binding.scheme': 'bearer',
      'svc.proxy.emit': 'inject',
    });
    const passed = { 'svc.proxy.method': 'GET', 'svc.proxy.upstream.path': '/', 'svc.proxy.upstream.status': 200 };
    await this.record('sandbox.proxy.passthrough', { ...passed, 'svc.proxy.upstream.host': 'example.com' });
    await this.record('sandbox.proxy.trust_denied', {
      'svc.proxy.method': 'POST',
      'svc.proxy.upstream.host': 'api.github.com',
      'svc.proxy.upstream.path': '/user/repos',
      'svc.proxy.binding.host': 'api.github.com',
      'svc.proxy.reason': 'effect_not_allowed',
    });
    const { id: connectorId } = created.parse(await this.api('POST', '/v1/connectors', ITEMS_SPEC));
    await this.api('PUT', `/v1/connectors/${connectorId}/credential`, {
      kind: 'api_key',
      value: `${PLANTED_SECRET}-2`,
    });
    await this.askApproval(connectorId);
    return { bindingId, tunnelHostId, clientCertificateId, connectorId, eventId };
  }

  /** Sends an event as the sidecar does; returns its id. Throws if it is not in the log afterwards. */
  async record(type: string, data: Readonly<Record<string, unknown>>): Promise<string> {
    const id = newId('evt', crypto.getRandomValues(new Uint8Array(16)));
    const event = {
      id,
      type,
      time: new Date().toISOString(),
      sidecar_id: this.sidecar.enrolled.sidecar_id,
      session_id: 'ses_demo',
      actor: 'session',
      data,
    };
    const reply = await this.sidecar.call('POST', '/v1/sidecar/events', { body: { events: [event] } });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`the event was not taken: ${text}`);
    const { rejected } = await this.sidecar.verify(text, EVENTS_TYP, eventsPayload);
    if (rejected.length > 0) throw new Error(`the event was rejected: ${JSON.stringify(rejected)}`);
    return id;
  }

  /** A request that waits for an approval; returns the approval's id. Without a fingerprint it is like no other request. */
  async askApproval(
    connectorId: string,
    summary = 'Items: delete item 42',
    fingerprint = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex'),
  ): Promise<string> {
    const body = {
      request_id: crypto.randomUUID(),
      connector_id: connectorId,
      operation: 'delete-item',
      fingerprint,
      summary,
      scope: createHash('sha256').update(summary).digest('hex'),
      session_id: 'ses_demo',
      session_name: 'claude',
      folder: '/home/ann/shop',
    };
    const reply = await this.sidecar.call('POST', '/v1/sidecar/approvals', { body });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`the approval was not asked: ${text}`);
    return (await this.sidecar.verify(text, APPROVAL_TYP, approvalPayload)).approval_id;
  }

  /** Answers the page that wants to see a request, as the sidecar that holds it does. */
  async showRequest(id: string, request: Omit<ShownRequest, 'approval_id' | 'fingerprint'>): Promise<void> {
    const { fingerprint } = approvalRecord.parse(await this.api('GET', `/v1/approvals/${id}`));
    const headers = { [APPROVAL_KNOWS_HEADER]: APPROVAL_KNOWS_VIEWS };
    const path = `/v1/sidecar/approvals/${id}?wait=25&request_id=${crypto.randomUUID()}`;
    const jws = await (await this.sidecar.call('GET', path, { headers })).text();
    const { views = [] } = await this.sidecar.verify(jws, APPROVAL_TYP, approvalPayload);
    for (const view of views) {
      const body = { view_id: view.id, sealed: await sealView(view, { approval_id: id, fingerprint, ...request }) };
      await this.sidecar.call('POST', `/v1/sidecar/approvals/${id}/views`, { body });
    }
  }
}

/** The origin of the console: where a sign-in link leads to. */
async function findConsole({ url, localKey }: ControlPlaneUnderTest): Promise<string> {
  const headers = { authorization: `Bearer ${localKey}` };
  const reply = await fetch(`${url}/v1/sign-in-links`, { method: 'POST', headers });
  return new URL(signInLinkReply.parse(await reply.json()).url).origin;
}

/** axe finds no accessibility problem. */
export async function expectAccessible(page: Page, without: readonly string[] = []): Promise<void> {
  const found = await axeProblems(page, without);
  expect({ url: page.url(), found }).toEqual({ url: page.url(), found: [] });
}

/** Nothing of the page is wider than the window. */
export async function expectFits(page: Page): Promise<void> {
  const over = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  expect({ url: page.url(), over }).toEqual({ url: page.url(), over: 0 });
}

/** Presses Tab until the focused element has this name, like a person without a mouse. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press('Tab');
    if ((await focusedName(page)).includes(name)) return;
  }
  throw new Error(`Tab leads to nothing named ${name} at ${page.url()}`);
}

/** The name of the focused element, as written on the page. */
async function focusedName(page: Page): Promise<string> {
  const name = await page.evaluate(
    `(() => { const it = document.activeElement; return it?.getAttribute('aria-label') ?? it?.labels?.[0]?.textContent ?? it?.textContent ?? ''; })()`,
  );
  return String(name).replaceAll(/\s+/g, ' ').trim();
}

/** Checks overflow in every width and scheme, and runs axe on the narrow page in the dark scheme and the wide one in the light scheme. */
export async function expectGoodInEveryLook(page: Page): Promise<void> {
  for (const { width, colorScheme } of LOOKS) {
    await page.setViewportSize({ width, height: HEIGHT });
    await page.emulateMedia({ colorScheme });
    if ((width === 360) === (colorScheme === 'dark')) await expectAccessible(page);
    await expectFits(page);
  }
}

/** Saves the screenshot for the documentation if CONSOLE_SHOTS=write is set. */
export async function savePicture(page: Page, name: string): Promise<void> {
  if (process.env['CONSOLE_SHOTS'] !== 'write') return;
  const folder = join(ROOT, 'docs/images');
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `console_${name}.png`) });
}
