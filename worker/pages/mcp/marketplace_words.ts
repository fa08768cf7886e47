import { html } from 'hono/html';
import { toSentence } from '../../../shared/model/sentence.ts';
import type { MarketplaceItem } from '../../../shared/wire/marketplace.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

/**
 * The path of an entry's page. It contains the name's slash, unless a browser would normalise a part of the name away.
 */
export function entryPath(name: string): string {
  const whole = encodeURIComponent(name);
  const isPlain = name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  return `/marketplace/${isPlain ? whole.replaceAll('%2F', '/') : whole}`;
}

/** The path of the image of an entry, which the control plane fetches. */
export function iconPath(name: string): string {
  return `/marketplace-icons/${encodeURIComponent(name)}`;
}

/** How current a registry reply is, in words. */
export function freshnessWords(
  { fetched_at: fetchedAt, stale }: { readonly fetched_at: string; readonly stale: boolean },
  nowMs: number,
): Html {
  if (!stale) return html`<p class="quiet small">Read from the registry ${timeAgo(fetchedAt, nowMs)}</p>`;
  return alert(
    'warn',
    html`<p>
      <strong>As of ${timeAgo(fetchedAt, nowMs)}; the registry does not answer.</strong> Servers may have changed since.
      You can install nothing until it answers again.
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

/** The kinds of an entry's packages, and whether it has a remote. */
export function entryKinds({ packages, remotes }: Pick<MarketplaceItem, 'packages' | 'remotes'>): readonly string[] {
  const kinds = packages.map(({ registry_type: type }) => ecosystemName(type));
  return [...new Set([...kinds, ...(remotes.length > 0 ? [ecosystemName('remote')] : [])])];
}

export function entryState({ status }: Pick<MarketplaceItem, 'status'>): Html | string {
  if (status === 'deprecated') return badge('warn', 'Deprecated');
  return status === 'deleted' ? badge('bad', 'Deleted') : '';
}

/** What to know before an install, on one line. */
export function riskLine({ risks }: Pick<MarketplaceItem, 'risks'>): Html | string {
  if (risks.length === 0) return '';
  return html`<p class="small risks">${foreignText(risks.map(({ text }) => text).join(' · '))}</p>`;
}

/** Why a rule of the enterprise lets nothing of it run, on one line. */
export function ruleLine({ rule_problem: problem }: Pick<MarketplaceItem, 'rule_problem'>): Html | string {
  return problem === null ? '' : html`<p class="small">${foreignText(toSentence(problem))}</p>`;
}

/** The same above the entry and above an install. */
export function ruleAlert({ rule_problem: problem }: Pick<MarketplaceItem, 'rule_problem'>): Html | string {
  if (problem === null) return '';
  return alert(
    'warn',
    html`<p><strong>It may not be used here.</strong> ${foreignText(toSentence(problem))}</p>
      <p><a href="/mcp-rules">Show the rules</a></p>`,
  );
}

/** What is being installed; in the URL of each step. */
export interface InstallSubject {
  readonly registry_id: string;
  readonly version: string;
  /** The index of its package or remote; the best one if neither is given. */
  readonly package?: string;
  readonly remote?: string;
}

/** The first step of an install. */
export function wizardPath(subject: InstallSubject): string {
  return pathWith('/mcp-servers/install', { ...subject });
}
