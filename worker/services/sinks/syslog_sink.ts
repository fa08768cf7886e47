import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { isRefusalEvent } from './refusal_event.ts';
import type { StreamSinkKind } from './sink_kind.ts';

/** Syslog messages (RFC 5424), each after its length in bytes (RFC 5425 section 4.3). */
export const syslogSink: StreamSinkKind = {
  isSigned: false,
  isAlert: false,
  frame: ({ events, enterpriseId }) => {
    // Each is ASCII, so that its characters are its bytes.
    const messages = events.map((event) => messageOf(event, enterpriseId));
    return new TextEncoder().encode(messages.map((message) => `${message.length} ${message}`).join(''));
  },
};

/** Facility 13, log audit; severities of RFC 5424 section 6.2.1. */
const AUDIT_FACILITY = 13;
const WARNING = 4;
const INFORMATIONAL = 6;
const MAX_MSGID = 32;

/** The host is the enterprise, because the events of one may come from several workers; the process is the event's chain. */
function messageOf(event: StoredAuditEvent, enterpriseId: string): string {
  const priority = AUDIT_FACILITY * 8 + (isRefusalEvent(event.type) ? WARNING : INFORMATIONAL);
  const header = `<${priority}>1 ${event.time} ${enterpriseId} svc ${event.writer} ${event.type.slice(0, MAX_MSGID)}`;
  return `${header} - ${asciiJson(event)}`;
}

/** JSON in printable ASCII: no receiver has to guess an encoding, and nothing in an event can begin another message. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
