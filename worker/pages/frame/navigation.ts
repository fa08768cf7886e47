import type { Role } from '../../../shared/model/role.ts';

/** A page in the navigation. To add one, add it here, a route file and a page file (docs/decisions/0039). */
export interface NavigationPage {
  /** With the query that tells it from others at the same path. */
  readonly path: string;
  readonly title: string;
  /** The required role; absent: everybody. */
  readonly role?: Role;
  /** Has no meaning for the one user of local mode. */
  readonly hostedOnly?: true;
}

/** An entry of the navigation: its page, and others of its subject, which are tabs above each of them. */
export interface NavigationEntry {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly pages?: readonly NavigationPage[];
}

interface NavigationGroup {
  readonly title: string;
  readonly entries: readonly NavigationEntry[];
}

/** Drawn in components/icon.ts. */
export type IconName =
  | 'overview'
  | 'inbox'
  | 'list'
  | 'key'
  | 'link'
  | 'server'
  | 'shop'
  | 'plug'
  | 'person'
  | 'book'
  | 'parts'
  | 'box'
  | 'people'
  | 'building'
  | 'door'
  | 'shield';

export const NAVIGATION: readonly NavigationGroup[] = [
  {
    title: 'Watch',
    entries: [
      { path: '/', title: 'Overview', icon: 'overview' },
      {
        path: '/approvals',
        title: 'Approvals',
        icon: 'inbox',
        pages: [
          { path: '/approvals', title: 'Waiting' },
          { path: '/approvals?state=all', title: 'All' },
          { path: '/approvals?state=grants', title: 'Grants' },
          { path: '/approval-rules', title: 'Rules', hostedOnly: true },
        ],
      },
      {
        path: '/audit',
        title: 'Audit',
        icon: 'list',
        pages: [
          { path: '/audit', title: 'Events' },
          { path: '/audit/sessions', title: 'Sessions' },
          { path: '/plans', title: 'Plans' },
          { path: '/audit/verify', title: 'Proof' },
          { path: '/audit/retention', title: 'Retention' },
          { path: '/audit/sinks', title: 'Sinks' },
          { path: '/dependencies', title: 'Dependencies', role: 'admin' },
        ],
      },
    ],
  },
  {
    title: 'Seal',
    entries: [
      { path: '/secrets', title: 'Secrets', icon: 'key' },
      {
        path: '/bindings',
        title: 'Host rules',
        icon: 'link',
        pages: [
          { path: '/bindings', title: 'Bindings' },
          { path: '/client-certificates', title: 'Client certificates' },
          { path: '/tunnel-hosts', title: 'Tunnelled hosts' },
          { path: '/shares', title: 'Shared', hostedOnly: true },
        ],
      },
      {
        path: '/services',
        title: 'Services',
        icon: 'parts',
        pages: [
          { path: '/services', title: 'Connect a service' },
          { path: '/connectors', title: 'Connectors' },
        ],
      },
      {
        path: '/mcp-servers',
        title: 'MCP servers',
        icon: 'plug',
        pages: [
          { path: '/mcp-servers', title: 'Installed' },
          { path: '/marketplace', title: 'Marketplace' },
          { path: '/mcp-rules', title: 'Rules' },
        ],
      },
      { path: '/report', title: 'Exposure', icon: 'shield' },
    ],
  },
  {
    title: 'You',
    entries: [
      {
        path: '/account',
        title: 'Account',
        icon: 'person',
        pages: [
          { path: '/account', title: 'Sign-ins and tokens' },
          { path: '/sidecars', title: 'Sidecars' },
          { path: '/device', title: 'Connect a device', hostedOnly: true },
          { path: '/identities', title: 'Ways to sign in', hostedOnly: true },
          { path: '/members', title: 'Members', role: 'admin', hostedOnly: true },
          { path: '/groups', title: 'Groups', hostedOnly: true },
          { path: '/directory', title: 'Directory', role: 'admin', hostedOnly: true },
          { path: '/enterprise', title: 'Enterprise', hostedOnly: true },
          { path: '/docs', title: 'API reference' },
        ],
      },
    ],
  },
];

/** The entry that a path belongs to; null if it belongs to none. */
export function entryOf(path: string): NavigationEntry | null {
  const all = NAVIGATION.flatMap(({ entries }) => entries);
  return all.find((entry) => [entry, ...(entry.pages ?? [])].some((each) => isAtOrBelow(path, each.path))) ?? null;
}

/** A list that has no entry of its own. */
const ENTERPRISES = { path: '/enterprises', title: 'Your enterprises' };

/** The page that a path is at or below, the nearest one; null if there is none. */
export function pageAbove(path: string): { readonly path: string; readonly title: string } | null {
  const entry = entryOf(path);
  const below = entry?.pages?.filter((each) => isAtOrBelow(path, each.path)) ?? [];
  const nearest = below.toSorted((a, b) => b.path.length - a.path.length)[0] ?? entry;
  if (nearest !== null) return nearest.path === entry?.path ? entry : nearest;
  return isAtOrBelow(path, ENTERPRISES.path) ? ENTERPRISES : null;
}

function isAtOrBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}
