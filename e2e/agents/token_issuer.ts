import { randomBytes } from 'node:crypto';
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
});

/**
 * The token endpoint of a login, strict as providers are: each refresh token is good for one refresh, and one that comes back
 * ends the whole login (RFC 9700 section 4.14.2). All tokens are planted values that exist nowhere else.
 */
export class TokenIssuer {
  /** Every token ever issued. */
  readonly issued: string[] = [];
  /** The refused requests. */
  readonly refused: string[] = [];
  refreshes = 0;
  isRevoked = false;
  #access = '';
  #before = '';
  #refresh = '';
  readonly #clientId: string;
  readonly #makeAccess: () => string;
  readonly #expiresIn: number;

  constructor(clientId: string, makeAccess: () => string, expiresIn: number) {
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

  answer(body: string): TokenReply {
    const parsed = tokenRequest.safeParse(JSON.parse(body));
    if (!parsed.success || parsed.data.client_id !== this.#clientId) return this.#refuse('no request of this client');
    const { grant_type: grant, refresh_token: refreshToken } = parsed.data;
    if (grant !== 'refresh_token') return this.#refuse(`grant ${grant}`);
    if (this.isRevoked || refreshToken !== this.#refresh) {
      this.isRevoked ||= this.issued.includes(refreshToken ?? '');
      return this.#refuse('not the current refresh token');
    }
    this.refreshes += 1;
    this.#rotate();
    return { status: 200, body: this.#tokens() };
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
    this.issued.push(this.#access, this.#refresh);
  }

  #refuse(why: string): TokenReply {
    this.refused.push(why);
    return { status: 400, body: { error: 'invalid_grant' } };
  }
}
