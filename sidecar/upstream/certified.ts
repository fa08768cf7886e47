import type { PresentedCertificate } from '../ports.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { err, type Result } from '../../shared/model/result.ts';
import type { Dialling } from './dialling.ts';

/** What ends, and can be ended. */
interface Ending {
  destroy(): void;
  onClosed(listener: () => void): () => void;
}

/** Waits for a dial, and ends it when the certificate that it presents is changed or withdrawn. */
export async function whileCertified<Connected extends { destroy(): void }>(
  certificate: PresentedCertificate | null,
  dialling: Dialling<Connected>,
): Promise<Result<Connected, Refusal>> {
  if (certificate === null) return dialling.connected;
  const unwatch = certificate.inForce.onChanged(() => {
    if (certificate.inForce() !== null) dialling.cancel();
  });
  try {
    const dialled = await dialling.connected;
    const lapsed = certificate.inForce();
    if (lapsed === null) return dialled;
    if (dialled.ok) dialled.value.destroy();
    return err(lapsed);
  } finally {
    unwatch();
  }
}

/** Ends a connection, idle or in use, when the certificate that it was opened with is changed or withdrawn. */
export function endWithCertificate(certificate: PresentedCertificate | null, upstream: Ending): void {
  if (certificate === null) return;
  // Not the certificate itself, so that its key is kept no longer than the TLS library keeps it.
  const { inForce } = certificate;
  const unwatch = inForce.onChanged(() => {
    if (inForce() !== null) upstream.destroy();
  });
  upstream.onClosed(unwatch);
}
