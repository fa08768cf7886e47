import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';

/** A reply of the token endpoint. */
interface TokenReply {
  readonly status: number;
  readonly body: object;
}

const tokenRequest = z.object({
  grant_type: z.string(),
  client_id: z.string(),
  refresh_token: z.string().optional(),
  code: z.string().optional(),
  code_verifier: z.string().optional(),
  redirect_uri: z.string().optional(),
});

const revocation = z.object({ token: z.string(), client_id: z.string() });

/** A login that a person has confirmed in the browser. */
interface Grant {
  readonly challenge: string;
  readonly redirectUri: string;
}

/**
 * The token endpoint of a login, strict as providers are: each code is good for one request with its verifier (RFC 7636), each refresh token is good for one refresh, and one that comes back
 * ends the whole login (RFC 9700 section 4.14.2). All tokens are planted values that exist nowhere else.
 */
export class TokenIssuer {
  /** Every token ever issued. */
  readonly issued: string[] = [];
  /** The refused requests. */
  readonly refused: string[] = [];
  refreshes = 0;
  logins = 0;
  isRevoked = false;
  #access = '';
  #before = '';
  /** Its refresh tokens so far. */
  readonly #ofThisLogin = new Set<string>();
  #refresh = '';
  readonly #clientId: string;
  readonly #makeAccess: () => string;
  readonly #expiresIn: number;
  readonly #grants = new Map<string, Grant>();
  readonly #extra: () => object;

  /** `extra`: what a reply to a new login has besides the tokens. */
  constructor(clientId: string, makeAccess: () => string, expiresIn: number, extra: () => object = () => ({})) {
    this.#extra = extra;
    this.#clientId = clientId;
    this.#makeAccess = makeAccess;
    this.#expiresIn = expiresIn;
    this.#rotate();
  }

  get access(): string {
    return this.isRevoked ? 'revoked' : this.#access;
  }

  /** The access tokens that the service accepts: the newest, and the one before it, which a request on its way may still have. */
  get accepted(): readonly string[] {
    return this.isRevoked ? [] : [this.#access, this.#before].filter((token) => token !== '');
  }

  get refresh(): string {
    return this.#refresh;
  }

  /** A code for a login with this challenge. */
  grant(challenge: string, redirectUri: string): string {
    const code = `code-${randomBytes(16).toString('base64url')}`;
    this.#grants.set(code, { challenge, redirectUri });
    return code;
  }

  answer(body: string): TokenReply {
    const fields: unknown = body.startsWith('{') ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
    const parsed = tokenRequest.safeParse(fields);
    if (!parsed.success || parsed.data.client_id !== this.#clientId) return this.#refuse('no request of this client');
    const { grant_type: grant, refresh_token: refreshToken } = parsed.data;
    if (grant === 'authorization_code') return this.#redeem(parsed.data);
    if (grant !== 'refresh_token') return this.#refuse(`grant ${grant}`);
    if (this.isRevoked || refreshToken !== this.#refresh) {
      this.isRevoked ||= this.#ofThisLogin.has(refreshToken ?? '');
      return this.#refuse('not the current refresh token');
    }
    this.refreshes += 1;
    this.#rotate();
    return { status: 200, body: this.#tokens() };
  }

  /** A revocation (RFC 7009): a token that is not known is answered like one that is. */
  revoke(body: string): TokenReply {
    const { token, client_id: client } = revocation.parse(JSON.parse(body));
    if (client === this.#clientId && token === this.#refresh) this.isRevoked = true;
    return { status: 200, body: {} };
  }

  #redeem({ code = '', code_verifier: verifier = '', redirect_uri: uri }: z.infer<typeof tokenRequest>): TokenReply {
    const known = this.#grants.get(code);
    this.#grants.delete(code);
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    if (known?.challenge !== challenge || known.redirectUri !== uri) return this.#refuse('no code with this verifier');
    this.logins += 1;
    this.isRevoked = false;
    // The tokens of an earlier login open nothing, and do not end this one.
    this.#ofThisLogin.clear();
    this.#rotate();
    return { status: 200, body: { ...this.#tokens(), ...this.#extra() } };
  }

  #tokens(): object {
    return {
      token_type: 'Bearer',
      access_token: this.#access,
      refresh_token: this.#refresh,
      expires_in: this.#expiresIn,
    };
  }

  #rotate(): void {
    this.#before = this.#access;
    this.#access = this.#makeAccess();
    this.#refresh = `rt-${randomBytes(30).toString('base64url')}`;
    this.#ofThisLogin.add(this.#refresh);
    this.issued.push(this.#access, this.#refresh);
  }

  #refuse(why: string): TokenReply {
    this.refused.push(why);
    return { status: 400, body: { error: 'invalid_grant' } };
  }
}
