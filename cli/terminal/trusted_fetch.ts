import type { CliContext } from '../context.ts';
import type { ApiCall } from './http_client.ts';
import { callLocally } from './local_call.ts';

/**
 * Calls the programs of svc. Reading the system's roots and loading `fetch`, for a hosted control plane, takes 0.2 s, so a call to
 * this machine does without.
 */
export function createTrustedFetch(env: CliContext['env']): ApiCall {
  let hosted: Promise<ApiCall> | null = null;
  return async (url, init) => {
    if (url.protocol === 'http:') return callLocally(url, init);
    hosted ??= import('./hosted_fetch.ts').then(({ createHostedFetch }) => createHostedFetch(env));
    return (await hosted)(url, init);
  };
}
