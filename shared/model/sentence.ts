/** The text with a capital first letter. */
export function capitalise(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** A message, which starts in lower case and has no full stop, as a sentence. */
export function toSentence(message: string): string {
  return `${capitalise(message)}.`;
}
