import { html } from 'hono/html';
import type { MarketplaceItem } from '../../../shared/wire/marketplace.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

/** Where an entry is shown. Its name stands in the path with its slash, unless a browser would take a part of it for a step. */
export function entryPath(name: string): string {
  const whole = encodeURIComponent(name);
  const isPlain = name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  return `/marketplace/${isPlain ? whole.replaceAll('%2F', '/') : whole}`;
}

/** How far an answer of the registry can be relied on, said in words. */
export function freshnessWords(
  { fetched_at: fetchedAt, stale }: { readonly fetched_at: string; readonly stale: boolean },
  nowMs: number,
): Html {
  if (!stale) return html`<p class="quiet small">As of ${timeAgo(fetchedAt, nowMs)}</p>`;
  return alert(
    'warn',
    html`<p>
      <strong>As of ${timeAgo(fetchedAt, nowMs)}; the registry does not answer now.</strong> Servers may have changed
      since. Nothing is installed until it answers again.
    </p>`,
  );
}

const ECOSYSTEMS: Readonly<Record<string, string>> = {
  npm: 'npm',
  pypi: 'PyPI',
  oci: 'OCI image',
  nuget: 'NuGet',
  mcpb: 'MCPB bundle',
  remote: 'Remote',
};

/** The name of a kind of packages. */
export function ecosystemName(kind: string): string {
  return Object.hasOwn(ECOSYSTEMS, kind) ? (ECOSYSTEMS[kind] ?? kind) : kind;
}

/** The kinds of an entry's packages, and that it is reached over HTTP. */
export function entryKinds({ packages, remotes }: Pick<MarketplaceItem, 'packages' | 'remotes'>): readonly string[] {
  const kinds = packages.map(({ registry_type: type }) => ecosystemName(type));
  return [...new Set([...kinds, ...(remotes.length > 0 ? [ecosystemName('remote')] : [])])];
}

export function entryState({ status }: Pick<MarketplaceItem, 'status'>): Html | string {
  if (status === 'deprecated') return badge('warn', 'Deprecated');
  return status === 'deleted' ? badge('bad', 'Deleted') : '';
}

/** What the install is of; it stands in the address of each of its steps. */
export interface InstallSubject {
  readonly registry_id: string;
  readonly version: string;
  /** Which of its packages or remotes, by its place there; the best one when it is neither. */
  readonly package?: string;
  readonly remote?: string;
}

/** The first step of an install. */
export function wizardPath(subject: InstallSubject): string {
  return pathWith('/mcp-servers/install', { ...subject });
}
