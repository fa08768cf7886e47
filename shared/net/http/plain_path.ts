/** Segments that every server reads alike: no escape, no parameter, no empty or dot segment. */
const PLAIN = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.:~@=-]+)+$/;

/** Whether all servers read this path in the same way, except for letter case. */
export function isPlainPath(path: string): boolean {
  return PLAIN.test(path);
}

/** Whether a path is one of these or below it, in every server's reading. A path with another spelling is not. */
export function isAtOrBelow(path: string, plainPaths: readonly string[]): boolean {
  return isPlainPath(path) && plainPaths.some((each) => path === each || path.startsWith(`${each}/`));
}
