import { origin, SECRET_NAME, segmentName } from '../fields.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';

export const DOPPLER = sourceKind('doppler', {
  title: 'Doppler',
  lead: 'A secret of a config, read there every few minutes.',
  ...KEPT,
  keys: ['token'],
  keyHint: 'A service token of the config, or another token that may read it.',
  fields: {
    project: { schema: segmentName, label: 'Project' },
    config: { schema: segmentName, label: 'Config', placeholder: 'prd' },
    secret_name: SECRET_NAME,
    doppler_url: {
      schema: origin('https://api.doppler.com').default('https://api.doppler.com'),
      label: 'API of Doppler',
      isRare: true,
    },
  },
});
