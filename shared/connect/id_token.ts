import { parseJson } from '../model/json.ts';

type Json = Readonly<Record<string, unknown>>;

/** What a ChatGPT login's id token says about its account. */
const OPENAI_AUTH = 'https://api.openai.com/auth';
const OPENAI_PROFILE = 'https://api.openai.com/profile';
const ACCOUNT_CLAIMS = ['chatgpt_plan_type', 'chatgpt_user_id', 'user_id', 'chatgpt_account_id'] as const;

/** The account that an id token names, unverified. */
interface IdTokenAccount {
  readonly email: string | null;
  readonly plan: string | null;
  /** The claims that Codex reads of it. */
  readonly claims: Readonly<Record<string, string>>;
}

export function readIdToken(jwt: string): IdTokenAccount {
  const id = claimsOf(jwt);
  const auth = objectOf(id[OPENAI_AUTH]);
  const claims = ACCOUNT_CLAIMS.flatMap((name) => {
    const text = textOf(auth[name]);
    return text === null ? [] : [[name, text] as const];
  });
  return {
    email: textOf(id['email']) ?? textOf(objectOf(id[OPENAI_PROFILE])['email']),
    plan: textOf(auth['chatgpt_plan_type']),
    claims: Object.fromEntries(claims),
  };
}

/**
 * The id token that a program gets in place of its own: the account's name and nothing else. Nobody accepts it as a credential,
 * because it is not signed; the program reads its claims only. `exp` is in seconds.
 */
export function placeholderIdToken({ email, claims }: Omit<IdTokenAccount, 'plan'>, exp: number): string {
  const payload = { ...(email !== null && { email }), exp, [OPENAI_AUTH]: claims };
  return [JSON.stringify({ alg: 'none', typ: 'JWT' }), JSON.stringify(payload), 'svc-placeholder']
    .map((part) => base64UrlOf(part))
    .join('.');
}

/** The claims of a JWT, unverified; empty if it is none. */
export function claimsOf(jwt: string): Json {
  const [, payload, signature] = jwt.split('.');
  if (payload === undefined || signature === undefined) return {};
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    return objectOf(parseJson(new TextDecoder().decode(bytes)));
  } catch {
    // It is no base64.
    return {};
  }
}

function base64UrlOf(text: string): string {
  const base64 = btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

export function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
