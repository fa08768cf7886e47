import { formatSize } from './quotas/byte_size.ts';
import type { RequestLimits } from './host_binding.ts';

/**
 * Names no secret: what a sidecar that cannot read a limit of bytes gets as the credential of a binding with one, so that it refuses
 * the binding's requests. Without the binding, a wildcard's binding would get them. The prefix is reserved, so nobody can store a
 * secret at this path.
 */
export const SECRET_FOR_A_NEWER_SIDECAR = 'connectors/none/needs-a-newer-svc';

/** The limits as fields of the API, of which each may be absent or null. */
interface LimitFields {
  readonly requests_per_minute?: number | null | undefined;
  readonly requests_per_day?: number | null | undefined;
  readonly bytes_per_day?: number | null | undefined;
}

/** The limits of these fields. */
export function toRequestLimits(fields: LimitFields): RequestLimits {
  const { requests_per_minute: minute, requests_per_day: day, bytes_per_day: bytes } = fields;
  return {
    ...(typeof minute === 'number' && { requestsPerMinute: minute }),
    ...(typeof day === 'number' && { requestsPerDay: day }),
    ...(typeof bytes === 'number' && { bytesPerDay: bytes }),
  };
}

/** Their fields. A sidecar of a version that does not know one refuses it, and does nothing without its limit. */
export function toLimitFields({ requestsPerMinute, requestsPerDay, bytesPerDay }: RequestLimits = {}): LimitFields {
  return {
    ...(requestsPerMinute !== undefined && { requests_per_minute: requestsPerMinute }),
    ...(requestsPerDay !== undefined && { requests_per_day: requestsPerDay }),
    ...(bytesPerDay !== undefined && { bytes_per_day: bytesPerDay }),
  };
}

/** Each limit in words, such as `60 a minute`; `noun` stands after a number of requests. */
export function listRequestLimits(limits: RequestLimits, noun = ''): readonly string[] {
  const { requestsPerMinute, requestsPerDay, bytesPerDay } = limits;
  return [
    ...(requestsPerMinute === undefined ? [] : [`${requestsPerMinute}${noun} a minute`]),
    ...(requestsPerDay === undefined ? [] : [`${requestsPerDay}${noun} a day`]),
    ...(bytesPerDay === undefined ? [] : [`${formatSize(bytesPerDay)} a day`]),
  ];
}

export function hasLimit({ requestsPerMinute, requestsPerDay, bytesPerDay }: RequestLimits): boolean {
  return requestsPerMinute !== undefined || requestsPerDay !== undefined || bytesPerDay !== undefined;
}
