/** An unfilled `<placeholder>` of a template or of documentation. */
const PLACEHOLDER = /<(\w[^<>]*)>/g;

/** The names of the placeholders in a text, in order, each once. */
export function placeholderNames(text: string): readonly string[] {
  return [...new Set(Array.from(text.matchAll(PLACEHOLDER), (match) => match[1] ?? ''))];
}

/** The text with the placeholders that `value` knows replaced. */
export function fillPlaceholders(text: string, value: (name: string) => string | null): string {
  return text.replaceAll(PLACEHOLDER, (whole: string, name: string) => value(name) ?? whole);
}

/** The problem with a text that still contains a placeholder; null if it contains none. */
export function placeholderProblem(text: string): string | null {
  const [name] = placeholderNames(text);
  if (name === undefined) return null;
  const shown = /^[\w -]{1,32}$/.test(name) ? `<${name}>` : '<…>';
  return `still contains the placeholder ${shown}: put the real value in its place`;
}
