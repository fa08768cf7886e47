import { z } from 'zod';
import { EMAIL_PATTERN } from '../model/email.ts';
import { id, line, time } from './primitives.ts';

/** `GET /auth/providers`: the sign-in providers, so that a page can show a button for each. */
export const providersReply = z
  .object({
    providers: z.array(
      z.object({
        /** A provider's name. */
        name: z.string(),
        title: z.string(),
        /** The URL where a browser starts. */
        login_url: z.string(),
      }),
    ),
    /** Whether sign-in with email and password is available. */
    password: z.boolean(),
  })
  .meta({ id: 'SignInProviders' });
export type ProvidersReply = z.infer<typeof providersReply>;

const MIN_PASSWORD = 12;
const MAX_PASSWORD = 256;

export const email = z
  .string()
  .max(254)
  .regex(EMAIL_PATTERN, 'is not an email address: write one such as alice@example.com');
const anyPassword = z.string().min(1).max(MAX_PASSWORD);

/** `POST /auth/signup`: creates an account with a password, or sets a new password for an existing one. */
export const signupInput = z
  .strictObject({
    email,
    password: z.string().min(MIN_PASSWORD).max(MAX_PASSWORD),
    display_name: line(200).optional(),
  })
  .meta({ id: 'SignupInput' });
export type SignupInput = z.infer<typeof signupInput>;

/** The same reply for every address. A code is sent to it by mail. */
export const signupReply = z.object({ signup_id: z.string(), expires_at: time }).meta({ id: 'SignupReply' });
export type SignupReply = z.infer<typeof signupReply>;

/** `POST /auth/verify`: the code from the mail. */
export const verifyInput = z
  .strictObject({
    signup_id: z.string().regex(/^[\w-]{43}$/, 'is not the signup_id of POST /auth/signup'),
    code: z.string().regex(/^\d{8}$/, 'must be the eight digits of the mail'),
  })
  .meta({ id: 'VerifyInput' });
export type VerifyInput = z.infer<typeof verifyInput>;

/** `POST /auth/login`. */
export const loginInput = z.strictObject({ email, password: anyPassword }).meta({ id: 'LoginInput' });
export type LoginInput = z.infer<typeof loginInput>;

/** A browser is signed in: the reply sets its session's cookie. */
export const signedInReply = z.object({ user_id: id('usr') }).meta({ id: 'SignedIn' });

/** `{provider}` of `/auth/{provider}/...`: a name from `GET /auth/providers`, or one of an enterprise's own. */
export const providerParams = z.object({ provider: z.string().min(1).max(128) });

/** Where the browser goes after sign-in: a path of this control plane; anything else means the first page. */
const returnTo = z.string().max(2_000).optional();

/** `GET /auth/{provider}/login`. */
export const loginQuery = z.object({ return_to: returnTo });

/** `GET /auth/sso`. */
export const ssoQuery = z.object({ email: z.string().max(254).optional(), return_to: returnTo });

const answered = z.string().max(8_000).optional();

/** `GET /auth/{provider}/callback` and `GET /auth/connectors/callback`: the parameters that the provider sets. `iss` by RFC 9207. */
export const callbackQuery = z.object({ state: answered, code: answered, error: answered, iss: answered });

/** `GET /auth/link/{code}`. */
export const linkParams = z.object({ code: z.string().min(1).max(128) });

/** `GET /auth/connectors/{id}/authorize`. */
export const connectorAuthorisationParams = z.object({ id: id('con') });
