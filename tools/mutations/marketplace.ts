import type { Mutation } from '../mutation.ts';

const INDEX = 'worker/marketplace/server_index.test.ts';
const PUBLISHER = 'shared/mcp/publisher.test.ts';
const ICONS = 'worker/marketplace/icons.test.ts';
const READMES = 'worker/marketplace/readmes.test.ts';
const README_TEXT = 'shared/mcp/readme_text.test.ts';
const row = 'MCP: marketplace';

/** Checks against entries of a registry that want to look like others ([decision 0072](../docs/decisions/0072-marketplace-ranking.md)). */
export const MARKETPLACE_MUTATIONS: readonly Mutation[] = [
  {
    row,
    holds: 'a name below a shared host proves only its own account',
    file: 'shared/mcp/publisher.ts',
    text: 'if (SHARED_HOSTS.has(`${top}.${second}`)) {',
    replacement: 'if (false) {',
    tests: [PUBLISHER],
  },
  {
    row,
    holds: 'a deeper subdomain proves no name',
    file: 'shared/mcp/publisher.ts',
    text: " || label === '' || !isOwn) return NOTHING;",
    replacement: " || label === '') return NOTHING;",
    tests: [PUBLISHER, INDEX],
  },
  {
    row,
    holds: 'letters that fold to others prove no name',
    file: 'shared/mcp/publisher.ts',
    text: 'if (!labels.every((label) => PLAIN_LABEL.test(label))) return { namespace, label: null, proof: null };',
    replacement: '',
    tests: [PUBLISHER],
  },
  {
    row,
    holds: 'a proven name ranks before names and titles',
    file: 'worker/marketplace/search_rank.ts',
    text: '    if (found.publisher > 0) return publisherRank(server, found.far);\n',
    replacement: '',
    tests: [INDEX],
  },
  {
    row,
    holds: 'a misspelled proven name ranks before a description that has the mistake',
    file: 'worker/marketplace/search_rank.ts',
    text: '    if (publisher > 0) return RANKS.similarPublisher;\n',
    replacement: '    if (publisher > 0) return RANKS.similarMixed;\n',
    tests: [INDEX],
  },
  {
    row,
    holds: 'only the start of a title counts as a name',
    file: 'worker/marketplace/search_text.ts',
    text: 'title.slice(0, MAX_TITLE)',
    replacement: 'title',
    tests: [INDEX],
  },
  {
    row,
    holds: 'a package that another publisher lists is no proof',
    file: 'worker/marketplace/search_rank.ts',
    text: 'return isOwn && literal !== label ? RANKS.whole : RANKS.named;',
    replacement: 'return RANKS.whole;',
    tests: [INDEX],
  },
  {
    row,
    holds: "an image's address is called as a stranger's",
    file: 'worker/marketplace/find_icon.ts',
    text: ', isStrangers: true',
    replacement: '',
    tests: [ICONS],
  },
  {
    row,
    holds: 'a private address of a stranger is not called in local mode',
    file: 'worker/entries/node_outbound.ts',
    text: 'options.isLocal && request.isStrangers !== true',
    replacement: 'options.isLocal',
    tests: [ICONS],
  },
  {
    row,
    holds: 'a named private host is not called for a stranger',
    file: 'worker/entries/node_outbound.ts',
    text: 'request.isStrangers === true ? [] : (options.privateHosts ?? [])',
    replacement: 'options.privateHosts ?? []',
    tests: [ICONS],
  },
  {
    row,
    holds: 'an image is a raster image by its first bytes',
    file: 'worker/marketplace/icons.ts',
    text: 'return type === null ? null : { type, bytes };',
    replacement: "return { type: type ?? 'image/png', bytes };",
    tests: [ICONS],
  },
  {
    row,
    holds: 'images are fetched for users only',
    file: 'worker/routes/console/console_marketplace.ts',
    text: 'caller === null ? null : await findIcon(',
    replacement: 'await findIcon(',
    tests: [ICONS],
  },
  {
    row,
    holds: "a README's address is called as a stranger's",
    file: 'worker/marketplace/find_readme.ts',
    text: ', isStrangers: true }',
    replacement: ' }',
    tests: [READMES],
  },
  {
    row,
    holds: 'a README comes only from the public registry of its kind',
    file: 'worker/marketplace/readmes.ts',
    text: 'registryBaseUrl === null || !isOfPublicRegistry(registryBaseUrl, registryType)',
    replacement: 'registryBaseUrl === null',
    tests: [READMES],
  },
  {
    row,
    holds: 'no visitor causes the call for a README',
    file: 'worker/routes/console/console_marketplace.ts',
    text: "if (caller === null || c.req.query('readme') !== '1') return null;",
    replacement: "if (c.req.query('readme') !== '1') return null;",
    tests: [READMES],
  },
  {
    row,
    holds: 'comments of a README, which a person would not see, are left out',
    file: 'shared/mcp/readme_text.ts',
    text: "    .replaceAll(COMMENT, '')\n",
    replacement: '',
    tests: [README_TEXT],
  },
  {
    row,
    holds: 'hidden characters of a README are shown',
    file: 'shared/mcp/readme_text.ts',
    text: 'showHidden(plain)',
    replacement: 'plain',
    tests: [README_TEXT],
  },
];
