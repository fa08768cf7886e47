/**
 * Whether a text is valid JSON with comments and trailing commas, as in editors' configurations. A lenient parser would
 * silently drop the rest of a damaged file.
 */
export function isJsonWithComments(text: string): boolean {
  try {
    JSON.parse(withoutTrailingCommas(withoutComments(text.replace(/^\uFEFF/, ''))));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Strings are kept unchanged. */
const STRING_OR_COMMENT = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g;
const STRING_OR_COMMA = /"(?:[^"\\\n]|\\.)*"|(?<=["\w}\]]\s*),(?=\s*[}\]])/g;

function withoutComments(text: string): string {
  return text.replaceAll(STRING_OR_COMMENT, (found) => (found.startsWith('"') ? found : ' '));
}

function withoutTrailingCommas(text: string): string {
  return text.replaceAll(STRING_OR_COMMA, (found) => (found.startsWith('"') ? found : ''));
}
