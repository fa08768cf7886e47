import { setTimeout as pause } from 'node:timers/promises';
import { createdInvitation } from '../../shared/wire/invitations.ts';
import { deviceReply, type TokenPair, tokenPair } from '../../shared/wire/device.ts';
import { type MeReply, meReply } from '../../shared/wire/account.ts';
import type { Role } from '../../shared/model/role.ts';
import { forwardedHeaders } from '../sign_in/named_outbound.ts';
import { TestBrowser } from '../sign_in/test_browser.ts';
import type { HostedProgram, StartHosted } from '../team/team_runtimes.ts';
import { HOST, type HostedWorld } from './hosted_world.ts';

/** The headers that the TLS proxy in front of a worker adds. */
export const FORWARDED = forwardedHeaders(HOST);

/** A worker of the installation, and what people and programs do there. */
export class HostedWorker {
  readonly world: HostedWorld;
  #program: HostedProgram;
  readonly #address: string;

  private constructor(world: HostedWorld, program: HostedProgram, address = '203.0.113.1') {
    this.world = world;
    this.#program = program;
    this.#address = address;
  }

  get program(): HostedProgram {
    return this.#program;
  }

  /** Starts it again, at another port, for the browsers and programs that it has. */
  async restart(start: StartHosted): Promise<void> {
    this.#program = await start(this.world.settings, this.world.sites);
  }

  static async start(world: HostedWorld, start: StartHosted): Promise<HostedWorker> {
    return new HostedWorker(world, await start(world.settings, world.sites));
  }

  /** The same for callers at another address, whose attempts are counted apart. */
  from(address: string): HostedWorker {
    return new HostedWorker(this.world, this.program, address);
  }

  /** Sends as the proxy in front of it does, or as Cloudflare does. */
  send = (target: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { pathname, search } = new URL(target, this.program.url);
    const caller = { 'x-forwarded-for': this.#address, 'cf-connecting-ip': this.#address };
    const headers = { ...Object.fromEntries(new Headers(init.headers)), ...FORWARDED, ...caller };
    return fetch(this.program.url + pathname + search, { redirect: 'manual', ...init, headers });
  };

  post(path: string, body: object): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    return this.send(path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  /** Signs a person in at the provider. Returns their browser, and who they are here. */
  async signIn(name: string): Promise<{ readonly browser: TestBrowser; readonly me: MeReply }> {
    const { openId } = this.world;
    openId.person = { sub: name, email: emailOf(name), email_verified: true, name };
    const browser = new TestBrowser(this.send);
    const begun = await browser.get('/auth/general/login');
    const back = await openId.authorise(begun.headers.get('location') ?? 'none:');
    await browser.get(back.pathname + back.search);
    return { browser, me: meReply.parse(await (await browser.get('/v1/me')).json()) };
  }

  /** Signs a program in, by the code that the person types in the browser. */
  async signInProgram(browser: TestBrowser, name: string): Promise<SignedInProgram> {
    const asked = await this.post('/auth/device/code', { client_name: name });
    const { device_code, user_code, interval } = deviceReply.parse(await asked.json());
    const decided = await browser.submit('/device/decide', { user_code, decision: 'approve' });
    if (!decided.ok) throw new Error(`the sign-in of ${name} was not approved: ${decided.status}`);
    for (;;) {
      const reply = await this.post('/auth/device/token', { device_code });
      if (reply.ok) return new SignedInProgram(this, tokenPair.parse(await reply.json()));
      await pause(interval * 1000);
    }
  }

  /** Takes somebody into the enterprise of `by`, in a role. Returns their browser and their program. */
  async takeIn(by: SignedInProgram, name: string, role: Role): Promise<HostedPerson> {
    const invited = await by.call('POST', '/v1/invitations', { email: emailOf(name), role });
    const { pathname } = new URL(createdInvitation.parse(await invited.json()).url);
    const { browser } = await this.signIn(name);
    await browser.submit(pathname, {});
    return this.openPerson(browser, name);
  }

  /** A person who is signed in, with a program. */
  async openPerson(browser: TestBrowser, name: string): Promise<HostedPerson> {
    const program = await this.signInProgram(browser, `laptop of ${name}`);
    const me = meReply.parse(await (await program.call('GET', '/v1/me')).json());
    return { name, me, browser, program };
  }
}

const emailOf = (name: string) => `${name.toLowerCase()}@acme.test`;

/** Somebody with a browser, and a program that is signed in. */
export interface HostedPerson {
  readonly name: string;
  readonly me: MeReply;
  readonly browser: TestBrowser;
  readonly program: SignedInProgram;
}

/** A program that a person has signed in. */
export class SignedInProgram {
  readonly #worker: HostedWorker;
  #tokens: TokenPair;
  #renewAt: number;

  constructor(worker: HostedWorker, tokens: TokenPair) {
    this.#worker = worker;
    this.#tokens = tokens;
    this.#renewAt = halfLife(tokens);
  }

  get tokens(): TokenPair {
    return this.#tokens;
  }

  /** A usable access token. A test may take longer than one is valid. */
  async bearer(): Promise<string> {
    if (performance.now() > this.#renewAt) await this.renew();
    return this.#tokens.access_token;
  }

  async renew(): Promise<void> {
    const reply = await this.#worker.post('/auth/refresh', { refresh_token: this.#tokens.refresh_token });
    this.#tokens = tokenPair.parse(await reply.json());
    this.#renewAt = halfLife(this.#tokens);
  }

  async call(method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${await this.bearer()}`, 'content-type': 'application/json' };
    return this.#worker.send(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  }
}

function halfLife({ expires_in: seconds }: TokenPair): number {
  return performance.now() + seconds * 500;
}
