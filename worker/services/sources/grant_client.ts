import { z } from 'zod';
import { parseJson } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { SourceOf } from '../../../shared/wire/sources/source_table.ts';
import { type KeyPart, keyPartsOf } from '../../../shared/wire/sources/key_parts.ts';
import type { Grantee } from '../oauth/oauth_grants.ts';
import { signAssertion } from './sign_jwt.ts';
import type { KeyCheck, MintFailure, Revoking } from './source_port.ts';
import { clientOf, keyProblem, revokeAccessToken } from './token_source.ts';

type GrantSource = SourceOf<'jwt_bearer'> | SourceOf<'token_exchange'>;
export type KeyParts = Partial<Readonly<Record<KeyPart, Secret>>>;

const NAMES = ['private_key', 'token', 'client_secret', 'actor_token'] as const;
const members = z.partialRecord(z.enum(NAMES), z.string().min(1).max(16_384));

/** The parts of the key of a grant. Refuses with `invalid_key`. */
export function readKeyParts(source: GrantSource, key: Secret): Result<KeyParts, MintFailure> {
  const needed = keyPartsOf(source);
  const [single, ...others] = needed;
  if (single !== undefined && others.length === 0) return ok({ [single]: key });
  const { data } = members.safeParse(parseJson(key.reveal()));
  const isWhole = data !== undefined && needed.every((name) => data[name] !== undefined);
  if (!isWhole || Object.keys(data).length !== needed.length) {
    const message = `it has several parts: give a JSON object with ${needed.join(' and ')}, each a text`;
    return err({ reason: 'invalid_key', message });
  }
  return ok(Object.fromEntries(Object.entries(data).map(([name, text]) => [name, new Secret(text ?? '')])));
}

export async function checkKeyParts(source: GrantSource, key: Secret): Promise<KeyCheck> {
  const parts = readKeyParts(source, key);
  if (!parts.ok) return parts.error;
  const { private_key: signing } = parts.value;
  const problem = signing === undefined ? null : await keyProblem(signing, source.algorithm);
  return problem ?? (signing !== undefined && keyPartsOf(source).length === 1 ? null : 'unchecked');
}

/** How the client of a grant authenticates: by its secret, or by an assertion that the private key signs (RFC 7523 section 3). */
export async function authenticateClient(
  source: GrantSource,
  { client_secret: clientSecret, private_key: signing }: KeyParts,
  nowMs: number,
): Promise<Result<Pick<Grantee, 'clientSecret' | 'clientAssertion'>, MintFailure>> {
  const { client_id: client, token_url: aud, algorithm, key_id: keyId, client_authentication: way = 'none' } = source;
  if (client === undefined) return ok({ clientSecret: null, clientAssertion: null });
  if (way !== 'private_key_jwt' || signing === undefined) return ok({ clientSecret: clientSecret ?? null });
  const claims = { iss: client, sub: client, aud };
  const signed = await signAssertion(signing, { algorithm, keyId, claims }, nowMs);
  return signed.ok ? ok({ clientSecret: null, clientAssertion: signed.value }) : signed;
}

/** Has the authorization server revoke a token of a grant, by the client that asked for it. */
export async function revokeGranted({
  source,
  key,
  outbound,
  nowMs,
  minted,
}: Revoking<'jwt_bearer'> | Revoking<'token_exchange'>): Promise<Result<void, MintFailure>> {
  const parts = readKeyParts(source, key);
  if (!parts.ok) return parts;
  const proof = await authenticateClient(source, parts.value, nowMs);
  if (!proof.ok) return proof;
  const client = clientOf(source.token_url, namedClient(source));
  return revokeAccessToken(source, { outbound, client, ...proof.value }, minted.value);
}

/** The client as the token endpoint is told it. */
export function namedClient({ client_id: id, client_authentication: way }: GrantSource) {
  return {
    ...(id !== undefined && { client_id: id }),
    ...(way === 'basic' && { client_authentication: 'basic' as const }),
  };
}
