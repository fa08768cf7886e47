import type { Role } from '../../../shared/model/role.ts';

/** A page in the navigation. To add one, add an entry here, a route file and a page file (docs/decisions/0039). */
export interface NavigationEntry {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** The required role; absent: everybody. */
  readonly role?: Role;
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
      { path: '/approvals', title: 'Approvals', icon: 'inbox' },
      { path: '/audit', title: 'Audit', icon: 'list' },
      { path: '/sidecars', title: 'Sidecars', icon: 'box' },
    ],
  },
  {
    title: 'Seal',
    entries: [
      { path: '/secrets', title: 'Secrets', icon: 'key' },
      { path: '/bindings', title: 'Host bindings', icon: 'link' },
      { path: '/tunnel-hosts', title: 'Tunnelled hosts', icon: 'door' },
      { path: '/connectors', title: 'Connectors', icon: 'parts' },
      { path: '/report', title: 'Sealability', icon: 'shield' },
    ],
  },
  {
    title: 'Extend',
    entries: [
      { path: '/marketplace', title: 'Marketplace', icon: 'shop' },
      { path: '/mcp-servers', title: 'Installed servers', icon: 'plug' },
    ],
  },
  {
    title: 'Enterprise',
    entries: [
      { path: '/members', title: 'Members', icon: 'people', role: 'admin' },
      { path: '/enterprise', title: 'Settings', icon: 'building' },
    ],
  },
  {
    title: 'Account',
    entries: [
      { path: '/account', title: 'Sign-ins and tokens', icon: 'person' },
      { path: '/identities', title: 'Ways you sign in', icon: 'door' },
      { path: '/device', title: 'Sign a program in', icon: 'server' },
      { path: '/docs', title: 'API reference', icon: 'book' },
    ],
  },
];
