import type { Settings } from '../../../shared/model/settings.ts';
import { SYSTEM_CLOCK } from '../../kernel/clock.ts';
import { nodeOutbound } from '../node_outbound.ts';
import { readProxy, trustRoots } from '../node_trust.ts';
import type { Kms } from './kms.ts';

type KmsSettings = Pick<Settings, 'kmsCredentialsFile' | 'kmsUrl'> & Partial<Pick<Settings, 'upstreamCaFiles'>>;

/** The KMS of the settings, called as the control plane calls others. It is loaded when a file is protected by it. */
export function nodeKms(settings: KmsSettings): Kms {
  const open = async (): Promise<Kms> => {
    const { cloudKms } = await import('./cloud_kms.ts');
    const { kmsUrl: url, kmsCredentialsFile: credentialsFile, upstreamCaFiles = [] } = settings;
    const prepareTrust = trustRoots(upstreamCaFiles);
    // The operator alone names the URL, so it may be a private address.
    const outbound = nodeOutbound({ isLocal: true, pinned: new Map(), proxy: readProxy(), prepareTrust });
    return cloudKms({ outbound, url, credentialsFile, now: () => SYSTEM_CLOCK.now() });
  };
  return {
    wrap: async (call, plain) => (await open()).wrap(call, plain),
    unwrap: async (call, wrapped) => (await open()).unwrap(call, wrapped),
  };
}
