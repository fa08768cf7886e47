/** A method and a path of the route table. */
export type RouteName = readonly [method: string, path: string];

/** Forms whose page is neither their own address nor above it, or cannot be opened without what the form has sent. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  '/secrets/sources': '/secrets/sources/new',
  '/account/tokens': '/account/tokens/new',
  '/approval-grants/{id}/revoke': '/approvals',
  '/secrets/delete': '/secrets',
  '/secrets/source': '/secrets',
  '/mcp-servers/install': '/mcp-servers',
};

/**
 * The page that a form at an address is on: the address itself if it has a page, otherwise the nearest one above it.
 * People return there when the form was not accepted, because they cannot open the address of a form.
 */
export function formPages(pages: readonly RouteName[]): (path: string) => string {
  const shown = new Set(pages.filter(([method]) => method.toUpperCase() === 'GET').map(([, path]) => path));
  const forms = pages
    .filter(([method]) => method.toUpperCase() === 'POST')
    .map(([, path]) => ({ path, pattern: pathPattern(path) }));
  return (path) => {
    const form = forms.find(({ pattern }) => pattern.test(path));
    if (form === undefined) return path;
    const elsewhere = ELSEWHERE[form.path];
    if (elsewhere !== undefined) return elsewhere;
    return shown.has(form.path) ? path : pageAbove(form.path, path, shown);
  };
}

/** `path` has the form `form`; a page's address has the same beginning. */
function pageAbove(form: string, path: string, shown: ReadonlySet<string>): string {
  const [parts, given] = [form.split('/'), path.split('/')];
  for (let length = parts.length - 1; length > 1; length -= 1) {
    if (shown.has(parts.slice(0, length).join('/'))) return given.slice(0, length).join('/');
  }
  return '/';
}

/** `{id}` is one segment, `{path+}` is the rest. */
export function pathPattern(path: string): RegExp {
  const pattern = path
    .replaceAll('.', '\\.')
    .replaceAll(/\{\w+\+\}/g, '[^]+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${pattern}$`);
}
