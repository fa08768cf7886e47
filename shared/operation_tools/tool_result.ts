import { z } from 'zod';
import { propertyOfField } from '../connect/input_schema.ts';
import { jsonCostProblem } from '../wire/json_scan.ts';
import type { RunReply } from '../wire/connectors/connectors.ts';
import type { ListedOperation } from '../wire/connectors/connector_operations.ts';
import { parseJson } from '../model/json.ts';

/** Why an operation was not run. */
export interface ToolProblem {
  readonly code: string;
  readonly message: string;
  readonly details?: unknown;
}

type Block =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; mimeType: string; data: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; blob: string } };

/** The result of a tool (revision 2025-11-25, Tools). */
type ToolResult = {
  content: Block[];
  isError?: boolean;
  structuredContent?: Record<string, unknown>;
  _meta?: Record<string, unknown>;
};

/** The upstream's answer as a tool result. An error status becomes a tool error with the upstream's text. */
export function resultOfReply(reply: RunReply): ToolResult {
  const { upstream_status: status } = reply;
  const failed = status >= 400;
  const bytes = fromBase64(reply.body_base64);
  const structured = failed ? null : jsonObject(reply.content_type, bytes);
  const body = bytes.length === 0 ? [] : [bodyBlock(reply, bytes)];
  const note = failed || body.length === 0 ? [textBlock(`The upstream answered ${status}.`)] : [];
  return {
    content: [...note, ...body],
    ...(failed && { isError: true }),
    ...(structured !== null && { structuredContent: structured }),
    _meta: { 'svc/upstream_status': status, 'svc/audit_id': reply.audit_id },
  };
}

/** A refusal of the sidecar with its fix. */
export function resultOfFailure(operation: ListedOperation, problem: ToolProblem): ToolResult {
  const error = { code: problem.code, message: problem.message, details: problem.details };
  return {
    isError: true,
    content: [textBlock([problemText(operation, problem), adviceFor(operation, problem)].filter(Boolean).join('\n'))],
    structuredContent: { error },
  };
}

const fieldsOf = z.object({ fields: z.array(z.object({ field: z.string(), message: z.string() })) });
const approvalOf = z.object({ approval_id: z.string().regex(/^[a-z]{3}_[0-9A-Za-z]{1,64}$/) });

/** Names each argument as the caller knows it. */
function problemText(operation: ListedOperation, { code, message, details }: ToolProblem): string {
  const fields = code === 'invalid_args' ? fieldsOf.safeParse(details) : null;
  if (fields?.success !== true || fields.data.fields.length === 0) return `${code}: ${message}`;
  const inputs = { inputNames: operation.input_names, hostProperty: operation.host_property };
  const lines = fields.data.fields.map((each) => `- ${propertyOfField(inputs, each.field)} ${each.message}`);
  return ['invalid_args: these arguments are invalid:', ...lines].join('\n');
}

function adviceFor({ connector_fqn: fqn }: ListedOperation, { code, details }: ToolProblem): string {
  const approval = approvalOf.safeParse(details).data?.approval_id;
  switch (code) {
    case 'approval_required':
      return approval === undefined
        ? 'The call is not approved yet. A person can approve it: svc approvals list, or the page Approvals of the console. Then repeat the same call.'
        : `The call is not approved yet. A person can approve it: svc approvals approve ${approval}, or the page Approvals of the console. Then repeat the same call.`;
    case 'approval_denied':
      return 'A person has denied this call. Do not repeat it unless told to.';
    case 'binding_required':
      return `The connector has no credential. A person can store one: svc connector credential set ${fqn} (or svc connector authorize ${fqn} for oauth2).`;
    case 'reauthorisation_required':
      return `A person must authorise the connector again: svc connector authorize ${fqn}`;
    case 'connector_operation_not_found':
      return 'The connector was changed or removed: list the tools again.';
    default:
      return '';
  }
}

const MEDIA = /^(image|audio)\/[a-z0-9.+-]+$/;

function bodyBlock({ content_type: type, audit_id: id, body_base64: base64 }: RunReply, bytes: Uint8Array): Block {
  const mimeType = mediaType(type);
  const media = mimeType === 'image/svg+xml' ? undefined : MEDIA.exec(mimeType)?.[1];
  if (media === 'image' || media === 'audio') return { type: media, mimeType, data: base64 };
  const text = utf8(bytes);
  if (text !== null) return textBlock(text);
  const resource = {
    uri: `svc-reply:${id}`,
    mimeType: mimeType || 'application/octet-stream',
    blob: base64,
  };
  return { type: 'resource', resource };
}

function jsonObject(contentType: string, bytes: Uint8Array): Record<string, unknown> | null {
  if (!/^[a-z0-9.+-]+\/(?:[a-z0-9.+-]+\+)?json$/.test(mediaType(contentType))) return null;
  const text = utf8(bytes);
  const value = text === null || jsonCostProblem(text) !== null ? null : parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
}

function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Null if the bytes are not text. */
function utf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function textBlock(text: string): Block {
  return { type: 'text', text };
}
