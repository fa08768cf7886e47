import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { type Citation, findAnchors, findCitations, findLinks, hasAnchor } from './citations.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDERS = 'shared machine sandbox gateway sidecar cli worker tools e2e bench catalog docs bin'.split(' ');
/** Generated files, and files that quote citations to test them. */
const LEFT_OUT = ['tools/citations.ts', 'tools/citations.test.ts'];

function filesOf(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

const top = readdirSync(ROOT).filter((name) => /\.(?:md|cjs|ts)$/.test(name));
const files = [...top, ...FOLDERS.flatMap(filesOf)].filter((file) => !LEFT_OUT.includes(file));
const documents = files.filter((file) => file.endsWith('.md'));
const readable = files.filter((file) => /\.(?:md|ts|js|mjs|cjs|sh)$|image\/svc-[\w-]+$/.test(file));
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const anchors = {
  specification: findAnchors(read('docs/specification.md')),
  design: findAnchors(read('docs/design.md')),
};
const decisions = new Set(filesOf('docs/decisions').map((file) => file.slice('docs/decisions/'.length, -'.md'.length)));

function exists(citation: Citation): boolean {
  if (citation.kind === 'section') return hasAnchor(anchors[citation.document], citation.id);
  if (citation.kind === 'decision') return [...decisions].some((name) => name.startsWith(`${citation.number}-`));
  return existsSync(join(ROOT, citation.path));
}

describe('every citation', () => {
  it('points to a section, a row, a decision or a file of the project', () => {
    const broken = readable.flatMap((file) =>
      findCitations(read(file))
        .filter((citation) => !exists(citation))
        .map((citation) => `${file}: ${citation.text}${citation.kind === 'section' ? ` (${citation.id})` : ''}`),
    );
    expect(broken).toEqual([]);
  });

  it('that is a link in a document points to a file, and to an anchor in it', () => {
    const broken = documents.flatMap((document) =>
      findLinks(read(document))
        .filter(({ path, anchor }) => {
          const target = path === '' ? document : join(dirname(document), path);
          if (!existsSync(join(ROOT, target))) return true;
          return anchor !== '' && target.endsWith('.md') && !findAnchors(read(target)).has(anchor);
        })
        .map(({ path, anchor }) => `${document}: ${path}#${anchor}`),
    );
    expect(broken).toEqual([]);
  });
});

test('the list of decisions has each of them, by number, with its own title', () => {
  const titled = [...decisions]
    .filter((name) => name !== 'README')
    .toSorted()
    .map((name) => {
      const [title = ''] = read(`docs/decisions/${name}.md`).split('\n');
      return `| [${name.slice(0, 4)}](${name}.md) | ${title.replace(/^# /, '')} |`;
    });
  expect(read('docs/decisions/README.md').match(/^\| \[\d{4}\].*$/gm)).toEqual(titled);
});

const idsOf = (text: string) =>
  findCitations(text).map((citation) =>
    citation.kind === 'section'
      ? `${citation.document} ${citation.id}`
      : citation.kind === 'decision'
        ? citation.number
        : citation.path,
  );

describe('findCitations', () => {
  it.each([
    ['(specification section 1, Sandbox launch)', ['specification section-1', 'specification 1-sandbox-launch']],
    [
      'specification sections 2 to 4, design section 7',
      ['specification section-2', 'specification section-4', 'design section-7'],
    ],
    ['design section 5, invariants 1 and 8', ['design section-5', 'design 5-invariant-1', 'design 5-invariant-8']],
    ['Specification 1.1: no credential', ['specification section-1', 'specification 1-item-1']],
    [
      'Specification 1, Tool-step egress 1 to 4: reach',
      ['specification section-1', 'specification 1-tool-step-egress-item-1', 'specification 1-tool-step-egress-item-4'],
    ],
    [
      'a comment (specification section 5,\n   * Federated sign-in)',
      ['specification section-5', 'specification 5-federated-sign-in'],
    ],
    ['docs/decisions/0028 to 0032', ['0028', '0032']],
    ['see `sidecar/ports.ts` and docs/deploy.md', ['sidecar/ports.ts', 'docs/deploy.md']],
  ])('reads %j', (text, expected) => {
    expect(idsOf(text)).toEqual(expected);
  });

  it.each(['RFC 9112, section 6.1', 'OpenID Connect Core section 2'])('leaves out %j', (text) => {
    expect(idsOf(text)).toEqual([]);
  });
});

describe('findAnchors', () => {
  it('has explicit ids and headings, but no heading in a code block', () => {
    const markdown = '<a id="1-flag"></a>\n\n## What `svc` does, in short\n\n```sh\n# no heading\n```\n';
    expect([...findAnchors(markdown)]).toEqual(['1-flag', 'what-svc-does-in-short']);
  });
});
