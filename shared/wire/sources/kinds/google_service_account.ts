import { z } from 'zod';
import { providerUrl } from '../../connectors/connector_credentials.ts';
import {
  AUDIENCE,
  fewerScopes,
  fewerSeconds,
  DURATION_SECONDS,
  KEY_ID,
  LIST,
  SCOPES,
  SUBJECT,
  word,
} from '../fields.ts';
import { GOOGLE_ACCOUNT, GOOGLE_KEY_HINT } from '../google_fields.ts';
import { sourceKind } from '../source_descriptor.ts';

/** Of a token of Google, unless another life is asked for. */
export const GOOGLE_TOKEN_SECONDS = 3600;

/** It becomes a part of a path. */
const accountEmail = z
  .string()
  .regex(
    /^[\w.+-]{1,200}@[\w.-]{1,200}$/,
    'is not the email of a service account, such as ci@PROJECT.iam.gserviceaccount.com',
  );

export const GOOGLE_SERVICE_ACCOUNT = sourceKind('google_service_account', {
  title: 'Google service account',
  lead: 'An access token for scopes, or a JWT for one API. The fields are in the account’s key file.',
  runs: 'control_plane',
  value: 'token',
  lifeSeconds: GOOGLE_TOKEN_SECONDS,
  revokes: 'never',
  keys: ['private key'],
  keyHint: GOOGLE_KEY_HINT,
  fields: {
    client_email: { ...GOOGLE_ACCOUNT.client_email, schema: word },
    /** For an access token. */
    scopes: SCOPES,
    /** For a JWT that the account signs itself, in place of an access token: the API, such as https://pubsub.googleapis.com/. */
    audience: AUDIENCE,
    /** The person of a domain for whom the account acts. */
    subject: { ...SUBJECT, schema: word.optional() },
    key_id: KEY_ID,
    token_url: GOOGLE_ACCOUNT.token_url,
    /** The account whose token it is in the end, by the IAM Credentials API. It has the scopes; the account itself asks with its own. */
    impersonate: {
      schema: accountEmail.optional(),
      label: 'Account to impersonate',
      hint: 'Empty: the token is of the account itself',
      placeholder: 'deploy@project.iam.gserviceaccount.com',
    },
    /** The accounts in between: each may act for the next one, and the last one for the impersonated one. */
    delegates: {
      schema: z.array(accountEmail).min(1).max(5).optional(),
      label: 'Accounts in between',
      hint: LIST,
      isRare: true,
    },
    /** Of the token of the impersonated account. Google allows more than an hour only where a policy of the organisation does. */
    duration_seconds: { ...DURATION_SECONDS, schema: z.number().int().min(60).max(43_200).optional() },
    iam_credentials_url: {
      schema: providerUrl.optional(),
      label: 'IAM Credentials API',
      hint: 'Empty: https://iamcredentials.googleapis.com',
      isRare: true,
    },
  },
  checks: [
    (source) => {
      const { audience, scopes: asked, impersonate } = source;
      if ((audience === undefined) === (asked.length === 0)) {
        return { field: 'scopes', message: 'is needed, or audience: give exactly one of the two' };
      }
      if (impersonate === undefined) {
        const field = (['delegates', 'duration_seconds', 'iam_credentials_url'] as const).find(
          (name) => source[name] !== undefined,
        );
        return field === undefined
          ? null
          : { field, message: 'is only for an account that impersonates another one: give impersonate' };
      }
      if (audience !== undefined) return { field: 'audience', message: 'is not for impersonate: give scopes' };
      return source.subject === undefined
        ? null
        : {
            field: 'subject',
            message: 'is not for impersonate: an account acts either for a person or for another account',
          };
    },
  ],
  narrowedBy: {
    scopes: fewerScopes,
    duration_seconds: ({ duration_seconds: own = GOOGLE_TOKEN_SECONDS }, wanted) => fewerSeconds(own, wanted),
  },
});
