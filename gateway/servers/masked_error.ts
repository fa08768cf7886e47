import { ProtocolError } from '@modelcontextprotocol/client';
import type { SecretMask } from './secret_mask.ts';
import { DownstreamFailure } from './server_unavailable.ts';

/** What a server refused a request with, in its own words with its secrets masked and without the SDK's inner state. */
export function maskedError(error: unknown, mask: SecretMask): Error {
  const message = mask.text(error instanceof Error ? error.message : String(error));
  if (ProtocolError.isInstance(error)) return ProtocolError.fromError(error.code, message, mask.value(error.data));
  return new DownstreamFailure(message);
}
