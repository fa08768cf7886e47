import { refusal } from '../model/refusal.ts';
import { err, ok } from '../model/result.ts';
import type { SchemeAdapter } from './scheme_adapter.ts';
import { signAuthorization } from './sigv4_authorization.ts';
import { ChunkResigner } from './sigv4_chunks.ts';
import { isPresigned, findPresentedSignature } from './sigv4_presented.ts';
import { resignPresigned } from './sigv4_presigned.ts';
import { Signer } from './sigv4_signer.ts';

/**
 * Re-signs the outgoing request (AWS Signature Version 4) with the binding's key, region and service. The credential is HMAC
 * key material and appears nowhere else.
 */
export const SIGV4_RESIGN: SchemeAdapter<'sigv4-resign'> = {
  placeHeader: () => 'authorization',
  deriveSecrets: () => [],
  findPresented: findPresentedSignature,
  async write(injection, input) {
    const { request, credential, now, hash } = input;
    if (!request.target.startsWith('/') || request.target.includes('#')) return err(NOT_SIGNABLE);
    const signer = new Signer({ injection, secretAccessKey: credential, now, hash });
    const resign = isPresigned(request.target) ? resignPresigned : signAuthorization;
    const signed = await resign(injection, signer, input);
    if (!signed.ok) return signed;
    const { request: outgoing, payload, signature } = signed.value;
    if (payload.chunkForm === null) return ok(outgoing);
    return ok({ ...outgoing, bodyTransform: new ChunkResigner(signer, signature, payload.chunkForm) });
  },
};

const NOT_SIGNABLE = refusal(
  'invalid_request',
  'The request target cannot be signed: send an origin-form target without a "#".',
);
