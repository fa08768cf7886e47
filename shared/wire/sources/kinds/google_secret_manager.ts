import { z } from 'zod';
import { KEY_ID, origin, VALUE_FIELD, VERSION } from '../fields.ts';
import { GOOGLE_ACCOUNT, GOOGLE_KEY_HINT } from '../google_fields.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';

export const GOOGLE_SECRET_MANAGER = sourceKind('google_secret_manager', {
  title: 'Google Secret Manager',
  lead: 'A version of a secret, or a field of it, that a service account reads there every few minutes.',
  ...KEPT,
  keys: ['private key'],
  keyHint: GOOGLE_KEY_HINT,
  fields: {
    client_email: GOOGLE_ACCOUNT.client_email,
    secret_resource: {
      schema: z
        .string()
        .regex(
          /^projects\/[a-z0-9][a-z0-9.:-]{0,62}\/(?:locations\/[a-z0-9-]{1,63}\/)?secrets\/[\w-]{1,255}$/,
          'is not the name of a secret: write projects/PROJECT/secrets/NAME, without a version',
        ),
      label: 'Secret there',
      placeholder: 'projects/our-project/secrets/database',
    },
    version: VERSION,
    field: VALUE_FIELD,
    key_id: KEY_ID,
    token_url: GOOGLE_ACCOUNT.token_url,
    secret_manager_url: {
      schema: origin('https://secretmanager.googleapis.com').default('https://secretmanager.googleapis.com'),
      label: 'Endpoint',
      hint: 'For a regional secret: https://secretmanager.LOCATION.rep.googleapis.com',
      isRare: true,
    },
  },
});
