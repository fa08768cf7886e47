import { CompactSign, compactVerify } from 'jose';
import type { Identity } from '../../machine/sidecar_identity.ts';
import { type SavedSession, savedSession } from '../session/saved_session.ts';

/** Signs saved sessions with the sidecar's own key, and opens them with it. */
export interface SessionSeal {
  readonly sidecarId: string;
  seal(saved: SavedSession): Promise<string>;
  /** Null unless exactly this sidecar has signed it. */
  open(text: string): Promise<SavedSession | null>;
}

/** Keeps the signature apart from those of plans and calls. */
const TYP = 'svc-session+jws';
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The seal of one sidecar. A sidecar that was enrolled again after it was revoked has another key, so nothing of its earlier
 * sessions comes back.
 */
export function createSessionSeal({
  sidecarId,
  signingKey,
  verifyingKey,
}: Pick<Identity, 'sidecarId' | 'signingKey' | 'verifyingKey'>): SessionSeal {
  return {
    sidecarId,
    seal: (saved) =>
      new CompactSign(new TextEncoder().encode(JSON.stringify(saved)))
        .setProtectedHeader({ alg: 'EdDSA', typ: TYP })
        .sign(signingKey),
    async open(text) {
      try {
        const { payload, protectedHeader } = await compactVerify(text.trim(), verifyingKey, { algorithms: ['EdDSA'] });
        if (protectedHeader.typ !== TYP) return null;
        const saved = savedSession.safeParse(JSON.parse(decoder.decode(payload)));
        return saved.success && saved.data.sidecarId === sidecarId ? saved.data : null;
      } catch {
        return null;
      }
    },
  };
}
