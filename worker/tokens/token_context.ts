import type { ServiceContext } from '../kernel/service_context.ts';
import type { AccessKeys } from './access_keys.ts';

/** What tokens are made and checked with. */
export interface TokenContext extends ServiceContext {
  /** The keys that sign access tokens. */
  readonly accessKeys: AccessKeys;
}
