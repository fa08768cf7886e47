import { ProtocolError } from '@modelcontextprotocol/client';
import type { SecretMask } from './secret_mask.ts';
import { DownstreamError } from './server_unavailable.ts';

/** A server's error for a request, with secrets masked and without the SDK's internal state. */
export function maskError(error: unknown, mask: SecretMask): Error {
  const message = mask.maskText(error instanceof Error ? error.message : String(error));
  if (ProtocolError.isInstance(error)) return ProtocolError.fromError(error.code, message, mask.maskValue(error.data));
  return new DownstreamError(message);
}
