import { installerEnvironment } from './installer_environment.ts';

const OF_PIP = /^(?:PIP_.*|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|PYENV_(?:ROOT|VERSION)|NETRC)$/;

/** What pip is given of a program's environment: with `require-virtualenv`, it would install into no folder. */
export function pythonEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return { ...installerEnvironment(env, OF_PIP), PIP_REQUIRE_VIRTUALENV: '0' };
}
