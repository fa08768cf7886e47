import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { jwtVerify } from 'jose';
import { plantSecret } from './planted_secret.ts';
import { StsStub } from './sts_stub.ts';
import { expectStatus, type Svc } from './svc.ts';
import { listen } from './tls_upstream.ts';

const CALLER = 'AKIAE2EMINTING000001';
const ACCOUNT = 'ci@our-project.iam.gserviceaccount.com';
const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const APPLICATION = 'e2e-application';
const INSTALLATION = '/app/installations/9/access_tokens';
const LIFE_SECONDS = 3600;

interface Answer {
  readonly status: number;
  readonly body: string;
}

const json = (status: number, body: object): Answer => ({ status, body: JSON.stringify(body) });

/** A key pair of a provider's account, and what a search finds the private key by. */
class Account {
  readonly publicKey: KeyObject;
  readonly pem: string;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    this.publicKey = publicKey;
    this.pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  }

  /** Whole, without its frame, and one of its lines: a program may lay it out anew. */
  get forms(): readonly string[] {
    const lines = this.pem.trim().split('\n').slice(1, -1);
    return [this.pem, lines.join(''), ...lines.slice(2, 3)];
  }

  async signed(jwt: string, issuer: string): Promise<boolean> {
    const options = { issuer, algorithms: ['RS256'] };
    return jwtVerify(jwt, this.publicKey, options).then(
      () => true,
      () => false,
    );
  }
}

/**
 * Stubs of what mints: AWS's STS, the token endpoints of Google and Microsoft Entra ID, and GitHub's installation tokens. They are
 * written from the references, and are none of these. Each verifies who asks, and gives another value each time.
 */
export class MintingProviders {
  readonly #server: Server;
  readonly #google = new Account();
  readonly #github = new Account();
  readonly #azureSecret = plantSecret();
  readonly #callerKey = plantSecret();
  readonly #sts = new StsStub({ callers: new Map([[CALLER, this.#callerKey]]), now: Date.now });
  #url = '';
  /** The tokens, by provider. */
  readonly issued = { google: [] as string[], azure: [] as string[], github: [] as string[] };
  /** What GitHub was asked for. */
  readonly askedOfGitHub: unknown[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#answer(request).then(({ status, body }) => response.writeHead(status).end(body));
    });
  }

  static async start(): Promise<MintingProviders> {
    const providers = new MintingProviders();
    providers.#url = `http://127.0.0.1:${await listen(providers.#server)}`;
    return providers;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The key sets that AWS issued, by access key id. */
  get keySets(): StsStub['issued'] {
    return this.#sts.issued;
  }

  /** The keys of the sources: the long-lived secrets. */
  get keys(): readonly string[] {
    return [this.#callerKey, this.#azureSecret, ...this.#google.forms, ...this.#github.forms];
  }

  /** All values that were minted. */
  get values(): readonly string[] {
    const ofAws = [...this.keySets.values()].flatMap(({ secret, token }) => [secret, token]);
    return [...ofAws, ...Object.values(this.issued).flat()];
  }

  /** Where it listens. */
  get url(): string {
    return this.#url;
  }

  /** Adds a source for each at `vault://ci/NAME`. The control plane reaches the providers at `url`. */
  async addSources(svc: Pick<Svc, 'api'>, url = this.#url): Promise<void> {
    const add = async (name: string, key: string, source: object): Promise<void> => {
      expectStatus(await svc.api('POST', '/v1/secret-sources', { path: `ci/${name}`, key, source }), 201);
    };
    await add('aws', this.#callerKey, {
      kind: 'aws_assume_role',
      role_arn: 'arn:aws:iam::123456789012:role/deploy',
      region: 'eu-north-1',
      access_key_id: CALLER,
      sts_url: `${url}/sts`,
    });
    await add('google', this.#google.pem, {
      kind: 'google_service_account',
      client_email: ACCOUNT,
      scopes: [GOOGLE_SCOPE],
      token_url: `${url}/google`,
    });
    await add('azure', this.#azureSecret, {
      kind: 'client_credentials',
      client_id: APPLICATION,
      client_authentication: 'post',
      token_url: `${url}/azure`,
    });
    await add('github', this.#github.pem, {
      kind: 'github_app',
      app_id: '12',
      installation_id: '9',
      repositories: ['project'],
      permissions: { contents: 'write' },
      api_url: url,
    });
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const body = await buffer(request);
    const target = request.url ?? '';
    if (request.method !== 'POST') return json(405, {});
    if (target === '/sts') {
      const headers = (name: string): string[] => request.headersDistinct[name] ?? [];
      return this.#sts.answer({ method: 'POST', target, headers, body });
    }
    if (target === '/google') return this.#answerGoogle(new URLSearchParams(body.toString()));
    if (target === '/azure') return this.#answerAzure(new URLSearchParams(body.toString()));
    if (target === INSTALLATION) return this.#answerGitHub(request.headers.authorization, body);
    return json(404, {});
  }

  /** RFC 7523 section 2.1, as Google's service accounts use it. */
  async #answerGoogle(asked: URLSearchParams): Promise<Answer> {
    const isSigned = await this.#google.signed(asked.get('assertion') ?? '', ACCOUNT);
    if (!isSigned) return json(400, { error: 'invalid_grant' });
    return this.#grant('google', `ya29.${randomBytes(40).toString('base64url')}`);
  }

  /** RFC 6749 section 4.4. */
  #answerAzure(asked: URLSearchParams): Answer {
    const isClient = asked.get('client_id') === APPLICATION && asked.get('client_secret') === this.#azureSecret;
    return isClient
      ? this.#grant('azure', randomBytes(60).toString('base64url'))
      : json(401, { error: 'invalid_client' });
  }

  #grant(provider: 'google' | 'azure', token: string): Answer {
    this.issued[provider].push(token);
    return json(200, { access_token: token, token_type: 'Bearer', expires_in: LIFE_SECONDS });
  }

  /** `POST /app/installations/{id}/access_tokens`. */
  async #answerGitHub(authorization = '', body: Buffer): Promise<Answer> {
    const isApp = await this.#github.signed(authorization.replace(/^Bearer /, ''), '12');
    if (!isApp) return json(401, { message: 'A JSON web token could not be decoded' });
    this.askedOfGitHub.push(JSON.parse(body.toString()));
    const token = `ghs_${randomBytes(18).toString('hex')}`;
    this.issued.github.push(token);
    const expiresAt = new Date(Date.now() + LIFE_SECONDS * 1000).toISOString();
    const permissions = { contents: 'write', metadata: 'read' };
    return json(201, { token, expires_at: expiresAt, permissions, repositories: [{ name: 'project' }] });
  }
}
