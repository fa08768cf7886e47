/** One JSON-RPC message with its original text. The text is passed on unchanged, so that numbers keep every digit. */
export type Message =
  | {
      readonly kind: 'request';
      readonly id: string | number;
      readonly method: string;
      readonly params: Fields;
      readonly text: string;
    }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Fields; readonly text: string }
  /** `result` is empty for an error. */
  | { readonly kind: 'response'; readonly id: string | number | null; readonly result: Fields; readonly text: string };

export type Fields = Readonly<Record<string, unknown>>;

export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;
/** The first JSON-RPC code for implementation-defined errors. */
export const BRIDGE_ERROR = -32_000;

/** Parses a message; the error is a JSON-RPC code. */
export function readMessage(text: string): Message | typeof PARSE_ERROR | typeof INVALID_REQUEST {
  const value = jsonOf(text);
  if (value === undefined) return PARSE_ERROR;
  const fields = fieldsOf(value);
  const { id, method } = fields;
  const hasId = typeof id === 'string' || typeof id === 'number';
  if (fields['jsonrpc'] !== '2.0') return INVALID_REQUEST;
  if (typeof method === 'string') {
    const about = { method, params: fieldsOf(fields['params']), text: toLine(text, value) };
    if (hasId) return { kind: 'request', id, ...about };
    return id === undefined ? { kind: 'notification', ...about } : INVALID_REQUEST;
  }
  const isResponse = Object.hasOwn(fields, 'result') || Object.hasOwn(fields, 'error');
  if (!isResponse || (!hasId && id !== null && id !== undefined)) return INVALID_REQUEST;
  return { kind: 'response', id: id ?? null, result: fieldsOf(fields['result']), text: toLine(text, value) };
}

/** The text of an error response; `data` has details for programs. */
export function errorText(id: string | number | null, code: number, message: string, data?: Fields): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } });
}

/** The own fields of an object; empty for any other value. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** Undefined if the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Puts a message on one line. */
function toLine(text: string, value: unknown): string {
  return /[\r\n]/.test(text) ? JSON.stringify(value) : text;
}
