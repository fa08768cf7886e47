import { generateSidecarKeys, type Identity, identityOf } from '../../machine/sidecar_identity.ts';

/** An enrolled sidecar with its own keys; nobody has the private key of its control plane. */
export async function sampleIdentity(change: Partial<Identity> = {}): Promise<Identity> {
  const [own, controlPlane] = await Promise.all([generateSidecarKeys(), generateSidecarKeys()]);
  const { kty, crv, x } = controlPlane.signing;
  const identity = await identityOf({
    version: 1,
    sidecar_id: `sdc_${'1'.repeat(26)}`,
    control_plane_id: `cpl_${'1'.repeat(26)}`,
    control_plane_key: { kty, crv, x },
    signing_key: own.signing,
    receiving_key: own.receiving,
  });
  return { ...identity, ...change };
}
