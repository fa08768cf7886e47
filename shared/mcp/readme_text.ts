import { showHidden } from '../model/shown_text.ts';

/** A README as plain text. */
export interface ReadmeText {
  readonly text: string;
  /** The end is missing, because it is too long. */
  readonly cut: boolean;
}

/** Of what is read at all. */
const MOST_READ = 60_000;
const MOST_CHARACTERS = 15_000;
const MOST_LINES = 400;

/**
 * A publisher's README (Markdown, HTML or plain) as text that a person can read in a page or a terminal: what a reader of the
 * rendered page would not see (comments, hidden characters) is left out or shown by its name, nothing is loaded, and each link
 * shows where it leads. It is not made safe by what is removed here: whoever shows it writes it as text, never as markup.
 */
export function readmeText(markdown: string): ReadmeText {
  const whole = markdown.slice(0, MOST_READ).replaceAll(/\r\n?/g, '\n');
  const plain = withoutMarkup(whole)
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
  const lines = showHidden(plain).split('\n');
  const text = lines.slice(0, MOST_LINES).join('\n');
  const cut = text.length > MOST_CHARACTERS || lines.length > MOST_LINES || markdown.length > MOST_READ;
  return { text: text.slice(0, MOST_CHARACTERS).trimEnd(), cut };
}

/** What is between these tags is no text for a reader. */
const UNSEEN = /<(script|style|svg|template|iframe|object|noscript|head)\b[^>]{0,1000}>[\s\S]*?(?:<\/\1\s{0,10}>|$)/gi;
const COMMENT = /<!--[\s\S]*?(?:-->|$)/g;
/** A comment in Markdown: a definition of a link that nothing uses. */
const HIDDEN_LINE = /^ {0,3}\[[^\]\n]{0,200}\]: ?(?:<>|#|\/\/).{0,2000}$/gm;
/** No part of these patterns can match what another part or the next match does: a hostile text must not take long. */
const TAG = /<(\/?[a-z][a-z0-9-]{0,30})(\s[^<>]{0,2000})?\/?>/gi;
const BREAKS: ReadonlySet<string> = new Set(['br', '/p', '/div', '/li', '/tr', '/h1', '/h2', '/h3', '/h4']);
const IMAGE = /!\[([^[\]\n]{0,500})\](?:\([^()\n]{0,1000}\)|\[[^\]\n]{0,200}\])/g;
const BADGE = /\[!\[([^[\]\n]{0,500})\]\([^()\n]{0,1000}\)\]\(([^\s()<>]{0,1000})\)/g;
const LINK = /\[([^[\]\n]{0,500})\]\( ?<?([^\s()<>]{0,1000})>?(?: ["'][^"'\n]{0,200}["'])? ?\)/g;

function withoutMarkup(text: string): string {
  return text
    .replaceAll(COMMENT, '')
    .replaceAll(UNSEEN, '')
    .replaceAll(HIDDEN_LINE, '')
    .replaceAll(TAG, tagReader())
    .replaceAll(BADGE, (_, label: string, url: string) => linkText(imageText(label), url))
    .replaceAll(IMAGE, (_, label: string) => imageText(label))
    .replaceAll(LINK, (_, label: string, url: string) => linkText(label, url));
}

/** What is shown in the place of each tag: of an image its name, and after a link its address. */
function tagReader(): (tag: string, name: string, rest: string | undefined) => string {
  let opened = '';
  return (_, name, rest = '') => {
    const kind = name.toLowerCase();
    if (kind === 'img') return imageText(attributeOf(rest, 'alt'));
    if (kind === 'a') {
      opened = attributeOf(rest, 'href');
      return '';
    }
    if (kind !== '/a') return BREAKS.has(kind) ? '\n' : '';
    const url = opened;
    opened = '';
    return url === '' || url.startsWith('#') ? '' : ` (${url})`;
  };
}

const ATTRIBUTE = /([^\s"'<>=/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?/g;

/** The value of a tag's first attribute of this name, as a browser reads it; empty if there is none. */
function attributeOf(rest: string, wanted: string): string {
  for (const [, name = '', ...values] of rest.matchAll(ATTRIBUTE)) {
    if (name.toLowerCase() === wanted) return (values.find((value) => value !== undefined) ?? '').trim();
  }
  return '';
}

function imageText(label: string): string {
  return label.trim() === '' ? '' : `[image: ${label.trim()}]`;
}

/** A link within the page leads nowhere here. */
function linkText(label: string, url: string): string {
  const text = label.trim();
  return url === '' || url.startsWith('#') || url === text ? text : `${text} (${url})`;
}
