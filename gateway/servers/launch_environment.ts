import { join } from 'node:path';
import type { ServerDirectories } from '../../machine/server_directories.ts';

/**
 * What a local server is given of the gateway's own environment. Which certificates the machine trusts is known by variables
 * alone where its traffic is inspected: without them no package could be fetched there.
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

/** Nothing that comes with a package runs while it is installed; said last, so that no configuration takes it back. */
const NO_INSTALL_SCRIPTS = {
  npm_config_ignore_scripts: 'true',
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  // A release that was fetched once is what it was: a start waits for no registry that is slow or away.
  npm_config_prefer_offline: 'true',
  // Of Python packages, wheels only: building one runs code of its own.
  UV_NO_BUILD: '1',
  PIP_ONLY_BINARY: ':all:',
  DOTNET_CLI_TELEMETRY_OPTOUT: '1',
} as const;

/** Marks every process that a gateway starts, so that one which leaves its process group is found all the same. */
export const RUN_ID_VARIABLE = 'MCP_GATEWAY_RUN';

export interface LaunchEnvironmentOptions {
  readonly gateway: Readonly<Record<string, string | undefined>>;
  readonly directories: ServerDirectories;
  /** The server's own, with its credentials in place. */
  readonly own: Readonly<Record<string, string>>;
  readonly runId: string;
}

/**
 * The whole environment of a local server: where programs are, its own directories, its locale, which certificates are
 * trusted, and its own variables. No proxy, no variable of a provider and none of the service is passed on, and none named
 * like the service's can be set.
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
