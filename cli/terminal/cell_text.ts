/** A command for display: words that a shell would split are quoted, so that the end of each is visible. */
export function commandText(command: readonly string[]): string {
  return command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

/** The beginning of a text that is too long for a table. */
export function shortenText(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters - 1)}…`;
}
