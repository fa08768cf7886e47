/** Creates a value on first use and caches it. */
export function makeOnce<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
