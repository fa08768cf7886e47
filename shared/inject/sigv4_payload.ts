import type { Refusal } from '../model/refusal.ts';
import { refusal } from '../model/refusal.ts';
import { err, ok } from '../model/result.ts';
import type { Result } from '../model/result.ts';
import type { PayloadBody } from './outgoing_request.ts';
import { isChunkSignedForm, UNSIGNED_FORMS } from './payload_form.ts';
import type { ChunkSignedForm } from './payload_form.ts';
import { SIGV4, type Signer, type SigningAlgorithm } from './sigv4_signer.ts';

/** What is signed for the body. */
export interface SignedPayload {
  readonly hash: string;
  /** Set when the body's chunks have to be signed anew as they pass. */
  readonly chunkForm: ChunkSignedForm | null;
}

/**
 * The payload hash of a request. A form that asks for no hash of the whole body is kept; a hash that the client states is
 * never used, it is made anew from the body. `streamedHash` stands for a body that is not there to be hashed.
 */
export async function hashPayload(
  signer: Signer,
  claimed: readonly string[],
  body: PayloadBody,
  streamedHash: string | null,
): Promise<Result<SignedPayload, Refusal>> {
  const [form = '', ...others] = new Set(claimed);
  if (others.length > 0) return err(refusal('invalid_request', CONTRADICTORY));
  if (UNSIGNED_FORMS.has(form)) return ok({ hash: form, chunkForm: null });
  if (isChunkSignedForm(form)) {
    if (!form.startsWith(`STREAMING-${signer.algorithm}-`)) return err(refuseForm(form, signer.algorithm));
    return ok({ hash: form, chunkForm: form });
  }
  if (form.startsWith('STREAMING-')) return err(refuseForm(form));
  if (body.kind !== 'stream') {
    return ok({ hash: await signer.digestOf(body.kind === 'none' ? [] : body.chunks), chunkForm: null });
  }
  return streamedHash === null ? err(NOT_HASHED) : ok({ hash: streamedHash, chunkForm: null });
}

/** The refusal for a signing form we have no code for, naming it as far as its name is printable. */
export function refuseForm(form: string, algorithm: SigningAlgorithm = SIGV4): Refusal {
  const name = form.replaceAll(/[^A-Za-z0-9 -]/g, '?').slice(0, 64);
  return refusal(
    'signing_form_unsupported',
    `The signing form ${name} cannot be signed anew: configure the client for ${algorithm} without it.`,
  );
}

const CONTRADICTORY = 'The request states x-amz-content-sha256 more than once with different values: send it once.';

const NOT_HASHED = refusal(
  'signing_form_unsupported',
  'A streamed body cannot be hashed before it is sent, which this service needs: set the binding\'s body to "buffer".',
);
