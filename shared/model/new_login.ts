/** How a program asks for the tokens of a new login: RFC 6749 section 4.1.3 with RFC 7636, and RFC 8628 section 3.4. */
export const LOGIN_GRANTS = ['authorization_code', 'device_code'] as const;
export type LoginGrant = (typeof LOGIN_GRANTS)[number];

/** The longest token of a provider. */
export const MAX_TOKEN_CHARACTERS = 16_384;

/** Whose login it is, as the provider said in its reply; for a person. */
export interface LoginAccount {
  readonly who: string | null;
  readonly plan: string | null;
  /** The login was granted the right to make lasting API keys, or the provider did not say what it granted. */
  readonly may_make_keys: boolean;
}
