import { Secret } from '../../shared/model/secret.ts';
import type { Outbound } from '../../worker/kernel/outbound.ts';
import { type InProcess, startInProcess } from '../runtimes/in_process.ts';
import { CODE_HOST_CLIENT_ID, CODE_HOST_CLIENT_SECRET } from './code_host.ts';
import { forwardedHeaders } from './named_outbound.ts';

/** The host name of the control plane. */
export const HOST = 'control.acme.test';
/** The headers of the TLS proxy in front of it. */
export const FRONT = forwardedHeaders(HOST);

/** The settings of the code host at this host name, and of other providers. */
export function providerVariables(
  codeHost: string,
  others: Readonly<Record<string, string>> = {},
): Record<string, Secret> {
  const variables = {
    ...others,
    CODEHOST_OAUTH_CLIENT_ID: CODE_HOST_CLIENT_ID,
    CODEHOST_OAUTH_CLIENT_SECRET: CODE_HOST_CLIENT_SECRET,
    CODEHOST_OAUTH_URL: `https://${codeHost}`,
    CODEHOST_OAUTH_API_URL: `https://${codeHost}/api`,
  };
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, new Secret(value)]));
}

/** A hosted control plane in this process, whose providers are the code host at `code.acme.test` and those of `variables`. */
export function startHostedSignIn(
  outbound: Outbound,
  variables: Readonly<Record<string, string>> = {},
): Promise<InProcess> {
  const signIn = {
    allowedHosts: [HOST],
    providerVariables: providerVariables('code.acme.test', variables),
    mail: null,
  };
  return startInProcess({ localKey: null, publicUrl: `https://${HOST}`, outbound, signIn });
}
