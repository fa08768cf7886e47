/** A number with what it counts: `1 request`, `2 requests`. `several` is the plural where it is not the word with an s. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}
