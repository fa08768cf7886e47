import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { findProvider } from '../../sign_in/find_provider.ts';
import type { AuthProvider } from '../../sign_in/provider.ts';
import type { AppContext } from '../http/app_env.ts';
import { publicOrigin } from './public_origin.ts';

/** A provider and its callback URL. */
interface ProviderCallback {
  readonly provider: AuthProvider;
  readonly redirectURL: string;
}

/** The provider in the path, and its callback URL under the host name that the browser called. */
export async function findProviderCallback(c: AppContext): Promise<Result<ProviderCallback, ApiError>> {
  const provider = await findProvider(c.get('context'), c.req.param('provider') ?? '');
  if (provider === null) {
    return err(apiError('not_found', 'there is no such provider: GET /auth/providers lists them'));
  }
  const origin = publicOrigin(c);
  return origin.ok ? ok({ provider, redirectURL: `${origin.value}/auth/${provider.name}/callback` }) : origin;
}
