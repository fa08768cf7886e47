/** Words of prose. Hosts, paths, options, codes and `svc` keep their spelling at the start of a sentence, too. */
const PROSE = /^(?!svc\b)[a-z][a-z'’-]*(?=[\s,;]|:\s|$)/;

/** The text with a capital first letter, unless its first word is a name. */
export function capitalise(text: string): string {
  return PROSE.test(text) ? `${text.charAt(0).toUpperCase()}${text.slice(1)}` : text;
}

/** A message, which starts in lower case and has no full stop, as a sentence. */
export function toSentence(message: string): string {
  return `${capitalise(message)}.`;
}

/** A number with what it counts: `1 request`, `2 requests`. `several` is the plural where it is not the word with an s. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}
