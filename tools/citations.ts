/** A place in the project that a text points to. */
export type Citation =
  | {
      readonly kind: 'section';
      readonly document: 'specification' | 'design';
      readonly id: string;
      readonly text: string;
    }
  | { readonly kind: 'decision'; readonly number: string; readonly text: string }
  | { readonly kind: 'path'; readonly path: string; readonly text: string };

/** A relative link of a Markdown document: the path is empty for a link within the document, the anchor without its `#`. */
interface Link {
  readonly path: string;
  readonly anchor: string;
}

/** Folders whose files are cited by their path from the top. */
const FOLDERS = 'shared|machine|sandbox|gateway|sidecar|cli|worker|tools|e2e|bench|catalog|docs';
const SECTION =
  /\b([Ss]pecification|[Ss]pec|[Dd]esign)(?:'s)?,? (?:sections? )?(\d{1,2})(?:\.(\d))?((?:(?:, and|,| and| to) \d{1,2}\b)*)(?:, (?:(item|order|invariants?) (\d)(?: (?:to|and) (\d))?(?: and (\d))?|(?!RFC)(`[^`]+`|[A-Z][^,;:)(|.`]*)))?/g;
const DECISION = /\bdecisions?[ /](\d{4})\b(?: to (\d{4}))?/gi;
const CODE_PATH = new RegExp(`\`((?:${FOLDERS})/[\\w./-]*[\\w/])\``, 'g');
const DOCUMENT_PATH = /(?<![\w/.-])docs\/[\w./-]+\.md\b/g;

/** Every citation in a text: sections of the specification and the design, decisions, and paths of the project. */
export function findCitations(text: string): readonly Citation[] {
  const plain = withoutCommentMarks(text);
  return [...sections(plain), ...decisions(plain), ...paths(plain)];
}

/** The relative links and images of a Markdown document. */
export function findLinks(markdown: string): readonly Link[] {
  const prose = withoutCode(markdown);
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)];
  return targets
    .map((match) => match[1] ?? match[2] ?? '')
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => ({ path: target.split('#')[0] ?? '', anchor: target.split('#')[1] ?? '' }));
}

/** The anchors of a Markdown document: the explicit ids, and the ids that renderers give the headings. */
export function findAnchors(markdown: string): ReadonlySet<string> {
  const ids = [...markdown.matchAll(/<a id="([^"]+)">/g)].map((match) => match[1] ?? '');
  const headings = [...withoutFences(markdown).matchAll(/^#{1,6} (.+)$/gm)].map((match) => headingId(match[1] ?? ''));
  return new Set([...ids, ...headings]);
}

/** Whether a document has the anchor, or one that continues it: `1-sandbox-launch` stands for `1-sandbox-launch-and-proxy-policy`. */
export function hasAnchor(anchors: ReadonlySet<string>, id: string): boolean {
  if (anchors.has(id)) return true;
  const dash = id.indexOf('-');
  const [section, name] = [id.slice(0, dash), id.slice(dash + 1)];
  return [...anchors].some(
    (anchor) => anchor.startsWith(`${id}-`) || (anchor.startsWith(`${section}-`) && anchor.endsWith(`-${name}`)),
  );
}

function sections(text: string): readonly Citation[] {
  return [...text.matchAll(SECTION)].flatMap((match) => {
    const [whole, word = '', first = '', item, more = '', kind, from, to, also, name] = match;
    const document = word.toLowerCase() === 'design' ? ('design' as const) : ('specification' as const);
    const numbers = [first, ...[...more.matchAll(/\d+/g)].map(([number]) => number)];
    const last = numbers.at(-1) ?? first;
    const ids = numbers.map((number) => `section-${number}`);
    if (item !== undefined) ids.push(`${first}-${document === 'design' ? 'invariant' : 'item'}-${item}`);
    const numbered = [from, to, also].filter((number) => number !== undefined);
    if (kind !== undefined) ids.push(...numbered.map((number) => `${last}-${kind.replace(/s$/, '')}-${number}`));
    if (name !== undefined && item === undefined) ids.push(...namedIds(last, name));
    return ids.map((id) => ({ kind: 'section' as const, document, id, text: whole.trim() }));
  });
}

/** `Tool-step egress 1 to 4` cites numbered items below a heading; any other name is a heading or a row. */
function namedIds(section: string, name: string): readonly string[] {
  const items = /^(.*?) (\d)(?: to (\d))?$/.exec(name.trim());
  if (items === null) return [`${section}-${slug(name)}`];
  const numbers = [items[2], items[3]].filter((number) => number !== undefined);
  return numbers.map((number) => `${section}-${slug(items[1] ?? '')}-item-${number}`);
}

function decisions(text: string): readonly Citation[] {
  return [...text.matchAll(DECISION)].flatMap(([whole, from, to]) =>
    [from, to]
      .filter((number) => number !== undefined)
      .map((number) => ({ kind: 'decision' as const, number, text: whole })),
  );
}

function paths(text: string): readonly Citation[] {
  // A last part in capitals is a placeholder (`catalog/NAME`).
  const found = [...text.matchAll(CODE_PATH)].map((match) => match[1] ?? '').filter((path) => !/\/[A-Z]+$/.test(path));
  const documents = [...text.matchAll(DOCUMENT_PATH)].map(([path]) => path);
  return [...found, ...documents].map((path) => ({ kind: 'path' as const, path, text: path }));
}

/** Joins the lines of comments, so that a citation may span two lines. */
function withoutCommentMarks(text: string): string {
  return text.replace(/\n\s*(?:\*(?!\/)|\/\/|#)? */g, ' ');
}

function withoutFences(markdown: string): string {
  return markdown.replace(/^```[\s\S]*?^```$/gm, '');
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replace(/`[^`\n]*`/g, '');
}

function headingId(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\- _]/gu, '')
    .replaceAll(' ', '-');
}

/** Named like the anchors of docs/specification.md. */
function slug(name: string): string {
  return name
    .toLowerCase()
    .replace(/[`*{}]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 60);
}
