/**
 * Whether a text is JSON, with the comments and trailing commas that editors' configurations have. A parser that guesses
 * would leave the rest of a damaged file out of what it writes.
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

/** A string stays as it is, whatever is in it. */
const STRING_OR_COMMENT = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g;
const STRING_OR_COMMA = /"(?:[^"\\\n]|\\.)*"|(?<=["\w}\]]\s*),(?=\s*[}\]])/g;

function withoutComments(text: string): string {
  return text.replaceAll(STRING_OR_COMMENT, (found) => (found.startsWith('"') ? found : ' '));
}

function withoutTrailingCommas(text: string): string {
  return text.replaceAll(STRING_OR_COMMA, (found) => (found.startsWith('"') ? found : ''));
}
