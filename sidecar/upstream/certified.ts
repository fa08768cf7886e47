import type { PresentedCertificate } from '../ports.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { err, type Result } from '../../shared/model/result.ts';
import type { Dialling } from './dialling.ts';

/** What ends, and can be ended. */
interface Ending {
  destroy(): void;
  onClosed(listener: () => void): () => void;
}

/**
 * Waits for a dial. If it presents a client certificate, the dial and then its connection, idle or in use, end when the certificate is
 * changed or withdrawn.
 */
export function whileCertified<Connected extends Ending>(
  certificate: PresentedCertificate | null,
  dialling: Dialling<Connected>,
): Promise<Result<Connected, Refusal>> {
  return certificate === null ? dialling.connected : endWith(certificate.inForce, dialling);
}

/** Gets no key, so that a key is kept no longer than the TLS library keeps it. */
async function endWith<Connected extends Ending>(
  inForce: PresentedCertificate['inForce'],
  { connected, cancel }: Dialling<Connected>,
): Promise<Result<Connected, Refusal>> {
  let end = cancel;
  const unwatch = inForce.onChanged(() => {
    if (inForce() !== null) end();
  });
  const dialled = await connected;
  const lapsed = inForce();
  if (dialled.ok) {
    end = () => dialled.value.destroy();
    dialled.value.onClosed(unwatch);
    if (lapsed !== null) end();
  } else unwatch();
  return lapsed === null ? dialled : err(lapsed);
}
