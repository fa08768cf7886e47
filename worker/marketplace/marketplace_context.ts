import type { ServiceContext } from '../kernel/service_context.ts';
import type { Registry } from './registry.ts';

/** What the marketplace services need. */
export interface MarketplaceContext extends ServiceContext {
  /** The MCP registry that the marketplace shows. */
  readonly registry: Registry;
}
