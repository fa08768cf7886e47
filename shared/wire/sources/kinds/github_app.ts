import { z } from 'zod';
import { providerUrl } from '../../connectors/connector_credentials.ts';
import { LIST, word } from '../fields.ts';
import { sourceKind } from '../source_descriptor.ts';

/** GitHub's tokens live an hour. */
export const GITHUB_TOKEN_SECONDS = 3600;

const repositoryName = z
  .string()
  .regex(/^[\w.-]{1,100}$/, 'is not the name of a repository: leave out its owner')
  .max(100);
const LEVELS = ['read', 'write', 'admin'] as const;

/** GitHub itself refuses repositories and permissions that the installation does not have. */
export const GITHUB_APP = sourceKind('github_app', {
  title: 'GitHub App',
  lead: 'A token of one installation, narrowed to repositories and permissions.',
  runs: 'control_plane',
  value: 'token',
  lifeSeconds: GITHUB_TOKEN_SECONDS,
  revokes: 'always',
  keys: ['private key'],
  keyHint: 'The private key of the app, in PEM: the file that GitHub gave you.',
  fields: {
    app_id: { schema: word.max(100), label: 'App id', hint: 'The client id or the number of the app' },
    installation_id: {
      schema: z.string().regex(/^\d{1,20}$/, 'is not a number: the URL of the installation ends with it'),
      label: 'Installation id',
      hint: 'The number at the end of the installation’s URL',
    },
    repositories: {
      schema: z.array(repositoryName).min(1).max(500).optional(),
      label: 'Repositories',
      hint: `${LIST}, without their owner; empty: all of the installation`,
    },
    permissions: {
      schema: z.record(z.string().regex(/^[a-z_]{1,60}$/), z.enum(LEVELS)).optional(),
      label: 'Permissions',
      hint: 'Such as contents=read, issues=write; empty: all of the installation',
    },
    api_url: {
      schema: providerUrl.default('https://api.github.com'),
      label: 'API of GitHub',
      hint: 'For GitHub Enterprise: https://HOST/api/v3',
      isRare: true,
    },
  },
  narrowedBy: {
    repositories({ repositories }, { repositories: wanted = [] }) {
      const own = repositories?.map((name) => name.toLowerCase());
      const far = wanted.find((name) => own?.includes(name.toLowerCase()) === false);
      return far === undefined ? null : `${JSON.stringify(far)} is not one of those of the source`;
    },
    permissions({ permissions: own }, { permissions: wanted = {} }) {
      if (own === undefined) return null;
      const higher = Object.entries(wanted).find(([name, level]) => {
        const most = Object.hasOwn(own, name) ? own[name] : undefined;
        return most === undefined || LEVELS.indexOf(level) > LEVELS.indexOf(most);
      });
      return higher === undefined ? null : `${higher.join('=')} is more than the source has`;
    },
  },
});
