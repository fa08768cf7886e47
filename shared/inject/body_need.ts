import type { HostBinding } from '../model/host_binding.ts';
import { fieldValues } from '../net/http/http1_head.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import { isChunkSignedForm, UNSIGNED_FORMS } from './payload_form.ts';

/**
 * Whether the whole request body must be read before `inject` is called. False for a binding that streams, and for a
 * signed request whose form needs no hash of the whole body.
 */
export function needsBufferedBody(binding: HostBinding, request: OutgoingRequest): boolean {
  if (binding.body === 'stream') return false;
  if (binding.injection.scheme !== 'sigv4-resign') return true;
  return !fieldValues(request.fields, 'x-amz-content-sha256').some(
    (form) => UNSIGNED_FORMS.has(form) || isChunkSignedForm(form),
  );
}
