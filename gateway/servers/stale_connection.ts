import { SdkHttpError } from '@modelcontextprotocol/client';
import type { Downstream } from '../fronts/downstream.ts';
import { isUnauthorised } from './launcher.ts';
import type { SupervisedServer } from './supervised_server.ts';

/**
 * Ends the connection of a remote server that refuses the credentials (401) or does not know the session (404). True if
 * nothing was done and a new session may help.
 */
export async function dropStale(
  supervised: Pick<SupervisedServer, 'current' | 'drop'>,
  downstream: Downstream,
  error: unknown,
): Promise<boolean> {
  if (isUnauthorised(error)) {
    const message = 'it refuses the credentials (401); sign in again, or store another credential for it';
    if (supervised.current === downstream) await supervised.drop({ reason: 'authorisation_needed', message });
    return false;
  }
  if (!isLostSession(error)) return false;
  // Another request may have noticed it before, so that there is a new session already.
  if (supervised.current === downstream) await supervised.drop(null);
  return true;
}

function isLostSession(error: unknown): boolean {
  return SdkHttpError.isInstance(error) && error.data.status === 404;
}
