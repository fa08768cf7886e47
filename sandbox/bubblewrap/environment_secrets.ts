import { delimiter, isAbsolute, join } from 'node:path';
import type { Environment } from '../launch/session_environment.ts';
import type { Guarded } from './plan_sandbox.ts';
import { configSecrets } from './visible_paths.ts';

/** Variables that name a file or a folder with keys or a login, instead of the usual one below the home. */
const NAMES_SECRET = [
  'AWS_SHARED_CREDENTIALS_FILE',
  'AZURE_CONFIG_DIR',
  'BOTO_CONFIG',
  'CLOUDSDK_CONFIG',
  'DOCKER_CONFIG',
  'GH_CONFIG_DIR',
  'GNUPGHOME',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'KUBECONFIG',
  'NETRC',
  'NPM_CONFIG_USERCONFIG',
  'npm_config_userconfig',
  'PASSWORD_STORE_DIR',
  'PGPASSFILE',
] as const;

/** The same of one agent: the variable, and where below its folder the login is. */
const LOGIN_FOLDERS: readonly { readonly agent: string; readonly variable: string; readonly file: string }[] = [
  { agent: 'claude', variable: 'CLAUDE_CONFIG_DIR', file: '.credentials.json' },
  { agent: 'codex', variable: 'CODEX_HOME', file: 'auth.json' },
  { agent: 'opencode', variable: 'XDG_DATA_HOME', file: 'opencode/auth.json' },
];

/** The secrets that the environment names elsewhere than where they usually are, but for the login of the agent that runs. */
export function secretsNamedBy(env: Environment, agent: string | null): readonly Guarded[] {
  const pathsOf = (variable: string): readonly string[] => (env[variable] ?? '').split(delimiter).filter(isAbsolute);
  const logins = LOGIN_FOLDERS.filter((login) => login.agent !== agent);
  const paths = [
    ...NAMES_SECRET.flatMap(pathsOf),
    ...logins.flatMap(({ variable, file }) => pathsOf(variable).map((folder) => join(folder, file))),
    ...pathsOf('XDG_CONFIG_HOME').flatMap(configSecrets),
  ];
  return paths.map((path) => ({ path, name: 'keys and logins of other programs' }));
}
