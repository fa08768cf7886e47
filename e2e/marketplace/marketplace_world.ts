import { nodeOutbound } from '../../worker/entries/node_outbound.ts';
import type { Lifetime } from '../../worker/kernel/lifetime.ts';
import { type InProcess, startInProcess } from '../runtimes/in_process.ts';
import { QuickClock } from './quick_clock.ts';
import { type RegistryServer, startRegistryServer } from './registry_server.ts';

/** A control plane in this process, with a registry of its own. */
export interface MarketplaceWorld {
  readonly registry: RegistryServer;
  readonly control: InProcess;
  readonly clock: QuickClock;
}

export async function startMarketplace(entries: number, lifetime?: Lifetime): Promise<MarketplaceWorld> {
  const registry = await startRegistryServer({ entries });
  const clock = new QuickClock();
  const control = await startInProcess({
    clock,
    ...(lifetime !== undefined && { lifetime }),
    outbound: nodeOutbound({ isLocal: true, pinned: new Map() }),
    registry: { url: registry.url },
  });
  return { registry, control, clock };
}
