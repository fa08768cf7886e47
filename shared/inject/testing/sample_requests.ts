import type { Emit, HostBinding, Injection } from '../../model/host_binding.ts';
import { parseRequestHead } from '../../net/http/http1_head.ts';
import { sampleBinding } from '../../model/testing/sample_binding.ts';
import type { OutgoingRequest } from '../outgoing_request.ts';

/** Valid objects for the tests of this folder; each test changes one field. */

/** A search key that is the same in every run. */
export const SAMPLE_SEARCH_KEY = Uint32Array.of(0x9e3779b9, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f, 0x165667b1);

export const PLACEHOLDER_SIGNATURE = '0'.repeat(64);

export function schemeBinding(injection: Injection, emit: Emit = { mechanism: 'inject' }): HostBinding {
  return sampleBinding({ injection, emit });
}

/** A request as the head reader returns it. `lines` are header lines; a Host line is prepended if there is none. */
export function sampleRequest(target: string, lines: readonly string[] = [], method = 'GET'): OutgoingRequest {
  const all = lines.some((line) => /^host:/i.test(line)) ? lines : ['Host: api.example.test', ...lines];
  const text = [`${method} / HTTP/1.1`, ...all, '', ''].join('\r\n');
  const head = parseRequestHead(text, { maxHeaders: 200 });
  if (!head.ok) throw new Error(`the sample request is not valid: ${head.error.message}`);
  return { method, target, host: 'api.example.test', fields: head.value.fields };
}

/** The header lines of a request, without its Host line. */
export function linesOf(request: OutgoingRequest): string[] {
  return request.fields.filter((field) => field.name !== 'host').map((field) => field.line);
}
