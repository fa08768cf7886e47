import { join } from 'node:path';
import type { ServerDirectories } from '../../machine/server_directories.ts';

/**
 * The gateway's variables that a local server inherits. The certificate variables are needed on machines whose traffic is
 * inspected, to fetch packages there.
 */
const INHERITED = [
  'PATH',
  'LANG',
  'LC_ALL',
  'TZ',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
] as const;

/** Disables install scripts of packages. Set last, so that no configuration can override it. */
const NO_INSTALL_SCRIPTS = {
  npm_config_ignore_scripts: 'true',
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  // A fetched release does not change, so a start does not wait for a slow or unavailable registry.
  npm_config_prefer_offline: 'true',
  // Only wheels for Python packages: building a package runs its code.
  UV_NO_BUILD: '1',
  PIP_ONLY_BINARY: ':all:',
  DOTNET_CLI_TELEMETRY_OPTOUT: '1',
} as const;

/** Marks every process that a gateway starts, so that one that leaves its process group can be found. */
export const RUN_ID_VARIABLE = 'MCP_GATEWAY_RUN';

interface LaunchEnvironmentOptions {
  readonly gateway: Readonly<Record<string, string | undefined>>;
  readonly directories: ServerDirectories;
  /** The server's own variables with credentials inserted. */
  readonly own: Readonly<Record<string, string>>;
  readonly runId: string;
}

/**
 * The complete environment of a local server: PATH, its own directories, locale, trusted certificates, and its own variables.
 * Proxy variables, providers' variables and svc's variables are not passed on, and SVC_ variables cannot be set.
 */
export function launchEnvironment(options: LaunchEnvironmentOptions): Record<string, string> {
  const { gateway, directories, own, runId } = options;
  const inherited = INHERITED.flatMap((name) => (gateway[name] === undefined ? [] : [[name, gateway[name]] as const]));
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    ...Object.fromEntries(inherited),
    TMPDIR: directories.temporary,
    XDG_CACHE_HOME: join(directories.home, '.cache'),
    XDG_CONFIG_HOME: join(directories.home, '.config'),
    XDG_DATA_HOME: join(directories.home, '.local', 'share'),
    ...withoutReserved(own),
    HOME: directories.home,
    ...NO_INSTALL_SCRIPTS,
    [RUN_ID_VARIABLE]: runId,
  };
}

function withoutReserved(own: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(own).filter(([name]) => !/^(svc_|npm_config_|path$)/i.test(name)));
}
