/** What is wrong with a typed host name's characters, naming the first one and its code point; null when nothing is. */
export function findLookAlike(_name: string): string | null {
  return null;
}
