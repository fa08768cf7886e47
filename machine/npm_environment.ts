import { installerEnvironment } from './installer_environment.ts';

const OF_NPM = /^(?:NODE_EXTRA_CA_CERTS|NPM_TOKEN|NODE_AUTH_TOKEN|npm_config_.*)$/i;

/** What npm is given of a program's environment. */
export function npmEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return installerEnvironment(env, OF_NPM);
}
