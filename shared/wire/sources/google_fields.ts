import { z } from 'zod';
import { providerUrl } from '../connectors/connector_credentials.ts';
import { TOKEN_URL } from './fields.ts';

/** A service account of Google, whose private key is the key of the source. */
export const GOOGLE_ACCOUNT = {
  client_email: {
    schema: z.string().regex(/^[\x21-\x7e]{1,500}$/, 'is not the email of a service account'),
    label: 'Email of the service account',
    placeholder: 'ci@project.iam.gserviceaccount.com',
  },
  token_url: { ...TOKEN_URL, schema: providerUrl.default('https://oauth2.googleapis.com/token') },
};

export const GOOGLE_KEY_HINT = 'The private key of the account, in PEM: private_key in its key file.';
