const MOST_TEMPLATE_CHARACTERS = 1_000;
const MOST_URI_CHARACTERS = 4_096;
const MOST_EXPRESSIONS = 12;

/** A part of a template: literal text, or an expression. */
type Part =
  | { readonly kind: 'text'; readonly text: string }
  /** `segment` ends at `/` and `,`; `rest` matches any length. */
  | { readonly kind: 'segment' | 'rest'; readonly mayBeEmpty: boolean };

const EXPRESSION = /\{([+#./;?&]?)([^{}]{1,200})\}/y;

/**
 * Whether a URI template (RFC 6570) matches a URI. Both are untrusted, so the time is at most proportional to the product of
 * their lengths; a longer or more complex input matches nothing.
 */
export function matchesTemplate(template: string, uri: string): boolean {
  if (template.length > MOST_TEMPLATE_CHARACTERS || uri.length > MOST_URI_CHARACTERS) return false;
  const parts = partsOf(template);
  if (parts === null) return false;
  let reached = new Uint8Array(uri.length + 1);
  reached[0] = 1;
  for (const part of parts) {
    reached = part.kind === 'text' ? advancePastText(reached, uri, part.text) : advancePastRun(reached, uri, part);
    if (!reached.includes(1)) return false;
  }
  return reached[uri.length] === 1;
}

/** Null if the text is not a template. */
function partsOf(template: string): readonly Part[] | null {
  const parts: Part[] = [];
  let expressions = 0;
  for (let at = 0; at < template.length;) {
    const start = template.indexOf('{', at);
    const text = start < 0 ? template.slice(at) : template.slice(at, start);
    if (text.includes('}')) return null;
    if (text !== '') parts.push({ kind: 'text', text });
    if (start < 0) break;
    EXPRESSION.lastIndex = start;
    const operator = EXPRESSION.exec(template)?.[1];
    expressions += 1;
    if (operator === undefined || expressions > MOST_EXPRESSIONS) return null;
    if (operator === '/' || operator === '.') parts.push({ kind: 'text', text: operator });
    const kind = operator === '' || operator === '.' ? 'segment' : 'rest';
    // A query expression disappears if none of its variables has a value.
    parts.push({ kind, mayBeEmpty: operator === '?' || operator === '&' || operator === ';' });
    at = EXPRESSION.lastIndex;
  }
  return parts;
}

function advancePastText(reached: Uint8Array, uri: string, text: string): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reached.length);
  for (let found = uri.indexOf(text); found >= 0; found = uri.indexOf(text, found + 1)) {
    if (reached[found] === 1) next[found + text.length] = 1;
  }
  return next;
}

function advancePastRun(
  reached: Uint8Array,
  uri: string,
  { kind, mayBeEmpty }: { readonly kind: 'segment' | 'rest'; readonly mayBeEmpty: boolean },
): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reached.length);
  let isOpen = false;
  for (let index = 0; index < reached.length; index += 1) {
    const last = uri[index - 1];
    if (kind === 'segment' && (last === '/' || last === ',')) isOpen = false;
    const isReached = reached[index] === 1;
    if (isOpen || (isReached && mayBeEmpty)) next[index] = 1;
    isOpen ||= isReached;
  }
  return next;
}
