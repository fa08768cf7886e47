import { z } from 'zod';
import { CLIENT_ID, origin, SECRET_NAME, segmentName, VERSION } from '../fields.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';

export const INFISICAL = sourceKind('infisical', {
  title: 'Infisical',
  lead: 'A secret that a machine identity reads there every few minutes.',
  ...KEPT,
  keys: ['client secret'],
  keyHint: 'The client secret of the machine identity.',
  fields: {
    /** Of a machine identity with Universal Auth. */
    client_id: { ...CLIENT_ID, schema: z.string().regex(/^[\x21-\x7e]{1,500}$/, 'is not a client id') },
    project_id: { schema: segmentName, label: 'Id of the project' },
    environment: { schema: segmentName, label: 'Environment', placeholder: 'prod' },
    folder: {
      schema: z
        .string()
        .regex(/^\/(?:[\w-]{1,255}(?:\/[\w-]{1,255})*)?$/, 'is not a folder: begin with a slash, such as /ci')
        .default('/'),
      label: 'Folder',
      hint: 'Empty: /',
    },
    secret_name: SECRET_NAME,
    version: VERSION,
    infisical_url: {
      schema: origin('https://eu.infisical.com').default('https://us.infisical.com'),
      label: 'Address of Infisical',
      hint: 'Empty: https://us.infisical.com',
    },
  },
});
