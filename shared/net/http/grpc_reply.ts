import type { Refusal, RefusalReason } from '../../model/refusal.ts';
import { REFUSALS } from '../../model/refusal.ts';
import type { FieldList } from './http2_head.ts';

/** A call of gRPC or gRPC-Web (the gRPC protocol over HTTP/2, "Requests"). */
const GRPC_TYPE = /^application\/grpc(?:-web(?:-text)?)?(?:\+[\w.+-]+)?$/;

/** The media type of a gRPC call, in lower case; null for any other request. */
export function grpcType(contentType: string | undefined): string | null {
  const type = (contentType?.split(';', 1)[0] ?? '').trim().toLowerCase();
  return GRPC_TYPE.test(type) ? type : null;
}

/**
 * The whole reply to a call of gRPC that is refused ("Trailers-Only"): clients read neither a body nor a status of HTTP. The
 * message starts with the code of the refusal.
 */
export function grpcRefusal(type: string, { reason, message }: Refusal): FieldList {
  const status = STATUS_OF[REFUSALS[reason].status];
  return [
    ':status',
    '200',
    'content-type',
    type,
    'grpc-status',
    String(status),
    'grpc-message',
    encodeMessage(`${reason}: ${message}`),
  ];
}

const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** The status of gRPC for each status of a refusal. */
const STATUS_OF: Readonly<Record<(typeof REFUSALS)[RefusalReason]['status'], number>> = {
  400: INVALID_ARGUMENT,
  403: PERMISSION_DENIED,
  407: UNAUTHENTICATED,
  413: RESOURCE_EXHAUSTED,
  421: INVALID_ARGUMENT,
  429: RESOURCE_EXHAUSTED,
  431: RESOURCE_EXHAUSTED,
  500: INTERNAL,
  501: UNIMPLEMENTED,
  502: UNAVAILABLE,
  503: UNAVAILABLE,
};

/** Percent-encodes what a message cannot have ("Status-Message"). */
function encodeMessage(message: string): string {
  let encoded = '';
  for (const byte of new TextEncoder().encode(message)) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}
