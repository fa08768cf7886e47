import type { ServiceContext } from '../kernel/service_context.ts';
import type { AccessKeys } from './access_keys.ts';

/** What creating and checking tokens needs. */
export interface TokenContext extends ServiceContext {
  /** The keys that sign access tokens. */
  readonly accessKeys: AccessKeys;
}
