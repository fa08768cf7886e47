/** What the key of a grant is made of. */
export type KeyPart = 'private_key' | 'token' | 'client_secret' | 'actor_token';

/** What of a source says what its key is made of. */
export interface KeyedGrant {
  readonly kind: 'jwt_bearer' | 'token_exchange';
  readonly issuer?: string | undefined;
  readonly client_authentication?: 'none' | 'basic' | 'post' | 'private_key_jwt' | undefined;
  readonly actor_token_type?: string | undefined;
}

/**
 * The parts of a source's key. A single one is the key itself; several are the members of a JSON object. A client assertion is signed
 * with the private key that the source has anyway.
 */
export function keyPartsOf(source: KeyedGrant): readonly KeyPart[] {
  const { client_authentication: way = 'none' } = source;
  const signsSubject = source.kind === 'jwt_bearer' || source.issuer !== undefined;
  return [
    ...(signsSubject ? [] : (['token'] as const)),
    ...(signsSubject || way === 'private_key_jwt' ? (['private_key'] as const) : []),
    ...(way === 'basic' || way === 'post' ? (['client_secret'] as const) : []),
    ...(source.actor_token_type !== undefined ? (['actor_token'] as const) : []),
  ];
}
