/** The members that a pointer leads through, in order (RFC 6901 section 4). A rule's pointer has no escapes. */
export function namesOfPointer(pointer: string): readonly string[] {
  return pointer.slice(1).split('/');
}

/**
 * For each member that a pointer leads through, the folded names that servers could take for it: its own, and those joined
 * with the members that follow (`a.b` and `a[b]` for `/a/b`).
 */
export function foldPointer(pointer: string): readonly (readonly string[])[] {
  const names = namesOfPointer(pointer);
  return names.map((_name, at) =>
    names.slice(at).map((_each, index) => foldName(names.slice(at, at + index + 1).join(''))),
  );
}

/**
 * A name without what servers ignore in it: letter case (Go's encoding/json), compatibility forms, and separators
 * (`at_most`, `atMost` and `at-most` are one name in Protocol Buffers' JSON and in many binders).
 */
export function foldName(name: string): string {
  return foldCase(name).replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** A word without letter case, compatibility forms, blanks and invisible characters. */
export function foldWord(word: string): string {
  return foldCase(word).replaceAll(/[\s\p{C}]/gu, '');
}

/** By way of capitals, because some letters share only these (`ı` and `i`). */
function foldCase(text: string): string {
  return text.normalize('NFKC').toUpperCase().toLowerCase();
}
