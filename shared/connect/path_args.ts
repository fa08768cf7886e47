/**
 * The decoded values that a path has for a template's `{name}`s. A value with an invalid escape stays as sent. Empty if the
 * path has another number of segments.
 */
export function pathArgs(template: string, path: string): ReadonlyMap<string, string> {
  const names = template.split('/');
  const segments = path.split('/');
  if (names.length !== segments.length) return new Map();
  const args = names.flatMap((name, index): [string, string][] =>
    name.startsWith('{') ? [[name.slice(1, -1), decodeSegment(segments[index] ?? '')]] : [],
  );
  return new Map(args);
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
