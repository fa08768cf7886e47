import { Client, type JsonSchemaValidator, type jsonSchemaValidator, type Tool } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { SVC } from '../../support/program.ts';
import { expectStatus, type Svc } from '../../support/svc.ts';
import { waitFor } from '../../support/wait_for.ts';

/** What the suite asks for: a client that uses the server at this URL. */
export interface Scenario {
  readonly scenario: string;
  readonly serverUrl: string;
  readonly context: Readonly<Record<string, unknown>>;
}

const created = z.object({ id: z.string() });
const record = z.looseObject({
  health: z.object({ state: z.string(), checked_at: z.string() }).nullable(),
});
const begun = z.object({ authorization_url: z.string() });
const unconfirmed = z.object({ error: z.object({ details: z.object({ hosts: z.array(z.string()) }) }) });
const calls = z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }));
const given = z.object({
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  private_key_pem: z.string().optional(),
  signing_algorithm: z.string().optional(),
  toolCalls: calls.optional(),
});

const UNCHECKED: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: z.custom<T>().parse(input), errorMessage: undefined }),
};

/** A gateway with one client. */
export class ScenarioPlayer {
  readonly #svc: Svc;
  readonly #client: Client;
  #servers = 0;

  private constructor(svc: Svc, client: Client) {
    this.#svc = svc;
    this.#client = client;
  }

  static async start(svc: Svc): Promise<ScenarioPlayer> {
    const client = new Client(
      { name: 'e2e', version: '1' },
      {
        capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
        versionNegotiation: { mode: 'auto' },
        jsonSchemaValidator: UNCHECKED,
      },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
    const args = ['--home', svc.home, 'mcp', 'gateway'];
    await client.connect(new StdioClientTransport({ command: SVC, args, stderr: 'inherit' }));
    return new ScenarioPlayer(svc, client);
  }

  stop(): Promise<void> {
    return this.#client.close();
  }

  /**
   * Adds the server with a credential that its authorization server mints for a client, without a person, and calls its tools.
   * A person names the token endpoint: it is never read from the server.
   */
  async playWithMinted({ serverUrl, context }: Scenario): Promise<void> {
    const client = given.parse(context);
    const issuer = await issuerOf(serverUrl);
    const key = client.private_key_pem ?? client.client_secret;
    const signs = { client_authentication: 'private_key_jwt', algorithm: client.signing_algorithm };
    const source = {
      kind: 'client_credentials',
      token_url: issuer.token_endpoint,
      client_id: client.client_id,
      ...(client.private_key_pem !== undefined && { ...signs, assertion_audience: issuer.issuer }),
    };
    const { id, name } = await this.#add(serverUrl, { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' });
    try {
      const minting = { path: `mcp-servers/${id}/TOKEN`, source, key };
      expectStatus(await this.#svc.api('POST', '/v1/secret-sources', minting), 201);
      const tools = await waitFor('the tools', async () => {
        const found = await this.#toolsOf(name);
        return found.length > 0 && found;
      });
      if ((await this.#callTools(name, tools, undefined)) !== null) throw new Error('a call asked for a sign-in');
    } finally {
      await this.#svc.api('DELETE', `/v1/mcp-servers/${id}`);
    }
  }

  async #add(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.#servers += 1;
    const name = `s${this.#servers}`;
    const made = await this.#svc.api('POST', '/v1/mcp-servers', { name, mode: 'remote', url, headers });
    expectStatus(made, 201);
    return { id: created.parse(made.body).id, name };
  }

  /** Adds the server, signs in to it when it asks for that, and calls its tools. */
  async play({ scenario, serverUrl, context }: Scenario): Promise<void> {
    const { id, name } = await this.#add(serverUrl);
    const { toolCalls, ...client } = given.parse(context);
    const registered = client.client_id === undefined ? {} : { ...client, client_authentication: 'basic' };
    try {
      // A server may ask for a sign-in only after the handshake.
      const state = await this.#stateOf(id, scenario.startsWith('auth/') ? REFUSED : TRIED);
      let asked =
        state === 'needs_authorisation' ? {} : await this.#callTools(name, await this.#toolsOf(name), toolCalls);
      for (let signIns = 0; asked !== null && signIns < MOST_SIGN_INS; signIns += 1) {
        await this.#authorise(id, { ...registered, ...asked });
        const signedInAt = new Date().toISOString();
        // The server of this scenario lists nothing, whatever the token is.
        if (scenario === 'auth/scope-retry-limit') return void (await this.#stateOf(id, ANSWERED));
        const listed = await waitFor('the tools', async () => {
          const tools = await this.#toolsOf(name);
          if (tools.length > 0) return tools;
          // The server of this scenario refuses the first token after its first request.
          const health = scenario === 'auth/authorization-server-migration' ? await this.#health(id) : null;
          return health?.state === 'needs_authorisation' && health.checked_at > signedInAt && 'none';
        });
        // The server may refuse the token by now; then a call says so.
        asked = listed === 'none' ? {} : await this.#callTools(name, listed, toolCalls);
      }
    } finally {
      await this.#svc.api('DELETE', `/v1/mcp-servers/${id}`);
    }
  }

  async #toolsOf(name: string) {
    const { tools } = await this.#client.listTools(undefined, { cacheMode: 'refresh' });
    return tools.filter((tool) => tool.name.startsWith(`${name}__`));
  }

  /** Calls each tool once. Returns what to sign in with if a call asks for that; null if all were answered. */
  async #callTools(
    name: string,
    own: readonly Tool[],
    named: z.output<typeof calls> | undefined,
  ): Promise<object | null> {
    const all =
      named ??
      own.map((tool) => ({
        name: tool.name.slice(name.length + 2),
        arguments: { a: 5, b: 3, schema: own[0]?.inputSchema },
      }));
    for (const call of all) {
      const answer = await this.#client.callTool({ ...call, name: `${name}__${call.name}` }).catch(String);
      const said = JSON.stringify(answer);
      if (said.includes('sign in again')) return {};
      const scopes = Array.from(said.matchAll(/ --add-scope ([\w:]+)/g), ([, scope]) => scope);
      if (scopes.length > 0) return { add_scopes: scopes };
    }
    return null;
  }

  /** The state of the server, once it is one of these. */
  async #stateOf(id: string, states: ReadonlySet<string>): Promise<string> {
    return waitFor('the state of the server', async () => {
      await this.#client.listTools(undefined, { cacheMode: 'refresh' });
      const found = (await this.#health(id))?.state;
      return found !== undefined && states.has(found) && found;
    });
  }

  async #health(id: string) {
    return record.parse((await this.#svc.api('GET', `/v1/mcp-servers/${id}`)).body).health;
  }

  async #authorise(id: string, input: object): Promise<void> {
    const path = `/v1/mcp-servers/${id}/authorize`;
    const first = await this.#svc.api('POST', path, input);
    const hosts = unconfirmed.safeParse(first.body).data?.error.details.hosts;
    const reply =
      hosts === undefined ? first : await this.#svc.api('POST', path, { ...input, authorization_hosts: hosts });
    expectStatus(reply, 200);
    const back = (await fetch(begun.parse(reply.body).authorization_url, { redirect: 'manual' })).headers.get(
      'location',
    );
    if (back === null) throw new Error('the authorization server does not redirect');
    expectStatus({ status: (await fetch(back)).status, body: back }, 200);
  }
}

const named = z.object({ authorization_servers: z.array(z.string()).min(1) });
const published = z.object({ issuer: z.string(), token_endpoint: z.string() });

const read = async (url: string): Promise<unknown> => (await fetch(url)).json();

/** What a person reads about the authorization server of a server. */
async function issuerOf(serverUrl: string) {
  const { origin, pathname } = new URL(serverUrl);
  const [issuer = ''] = named.parse(
    await read(`${origin}/.well-known/oauth-protected-resource${pathname}`),
  ).authorization_servers;
  return published.parse(await read(`${issuer}/.well-known/oauth-authorization-server`));
}

/** A server may ask for more access for ever. */
const MOST_SIGN_INS = 3;
const TRIED: ReadonlySet<string> = new Set(['running', 'needs_authorisation', 'failed']);
const REFUSED: ReadonlySet<string> = new Set(['needs_authorisation', 'failed']);
const ANSWERED: ReadonlySet<string> = new Set(['running', 'failed']);
