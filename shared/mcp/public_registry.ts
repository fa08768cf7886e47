/**
 * Whether a package is in the registry where its runner will look for it. A runner is never told another one: a name that
 * belongs to one publisher in one registry can belong to anybody in another.
 */
export function isOfPublicRegistry(baseUrl: string | null, label: string | null): boolean {
  if (baseUrl === null || baseUrl === '' || label === null) return true;
  if (!URL.canParse(baseUrl)) return false;
  const { protocol, hostname } = new URL(baseUrl);
  const labels = hostname.split('.');
  return (
    protocol === 'https:' &&
    (labels.at(-2) ?? '').startsWith(label) &&
    !labels.slice(0, -2).some((one) => /^(?:test|staging|int)/.test(one))
  );
}
