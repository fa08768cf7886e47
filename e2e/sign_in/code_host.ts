import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../support/tls_upstream.ts';

export const CODE_HOST_CLIENT_ID = 'svc-code-host';
export const CODE_HOST_CLIENT_SECRET = 'code-host-secret-of-a-test';

interface CodeHostUser {
  readonly id: number;
  readonly login: string;
  readonly name: string | null;
  readonly email: string | null;
}
interface CodeHostEmail {
  readonly email: string;
  readonly primary: boolean;
  readonly verified: boolean;
}

/** A code host like the well-known ones: OAuth 2.0, a profile and a list of emails. */
export interface CodeHost {
  /** Its origin on loopback. */
  readonly loopback: string;
  user: CodeHostUser;
  /** Null if the list cannot be read. */
  emails: readonly CodeHostEmail[] | null;
  /** The last requested scopes. */
  readonly scopes: () => string;
  /** Agrees like the user in the browser; returns the URL that it redirects to. */
  authorise(url: string): URL;
  stop(): Promise<void>;
}

interface Code {
  readonly challenge: string;
  readonly redirectUri: string;
}

export async function startCodeHost(): Promise<CodeHost> {
  const codes = new Map<string, Code>();
  const tokens = new Set<string>();
  let scopes = '';
  const server = createServer((request, response) => void serve(request, response));
  const loopback = `http://127.0.0.1:${await listen(server)}`;
  const host: CodeHost = {
    loopback,
    user: { id: 583_231, login: 'alice', name: 'Alice', email: 'alice@acme.test' },
    emails: [{ email: 'alice@acme.test', primary: true, verified: true }],
    scopes: () => scopes,
    authorise(url) {
      const asked = new URL(url).searchParams;
      scopes = asked.get('scope') ?? '';
      const code = randomBytes(10).toString('hex');
      const redirectUri = asked.get('redirect_uri') ?? '';
      codes.set(code, { challenge: asked.get('code_challenge') ?? '', redirectUri });
      const back = new URL(redirectUri);
      back.search = new URLSearchParams({ code, state: asked.get('state') ?? '' }).toString();
      return back;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply = await answer(request);
    response.writeHead(reply.status, { 'content-type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify(reply.body));
  };
  const answer = async (request: IncomingMessage) => {
    if (request.url === '/login/oauth/access_token') return redeem(new URLSearchParams(await bodyOf(request)));
    if (!tokens.has(request.headers.authorization?.slice('Bearer '.length) ?? '')) return { status: 401, body: {} };
    if (request.url === '/api/user') return { status: 200, body: host.user };
    if (request.url === '/api/user/emails' && host.emails !== null) return { status: 200, body: host.emails };
    return { status: 404, body: { message: 'Not Found' } };
  };
  const redeem = (form: URLSearchParams) => {
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isGood =
      code?.challenge === challenge &&
      code.redirectUri === form.get('redirect_uri') &&
      form.get('client_id') === CODE_HOST_CLIENT_ID &&
      form.get('client_secret') === CODE_HOST_CLIENT_SECRET;
    // Like such hosts: a refusal is a 200 with an error in it.
    if (!isGood) return { status: 200, body: { error: 'bad_verification_code' } };
    const token = randomBytes(20).toString('hex');
    tokens.add(token);
    return { status: 200, body: { access_token: token, token_type: 'bearer', scope: scopes } };
  };
  return host;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}
