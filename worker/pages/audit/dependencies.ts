import { html } from 'hono/html';
import type { DependencyKind, DependencyRecord, DependencyState } from '../../../shared/wire/status/dependencies.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

export const DEPENDENCIES_PATH = '/dependencies';

/** What the control plane depends on, what fails first. */
export function dependenciesPage(dependencies: readonly DependencyRecord[], nowMs: number): Page {
  const rows = dependencies.toSorted((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state));
  const content = html`${header()}
    <div class="panel flush">
      ${dataTable<DependencyRecord>({
        caption: 'Dependencies',
        rows,
        columns: [
          { title: 'What', cell: ({ kind }) => KINDS[kind] },
          { title: 'Name', cell: ({ name }) => html`<strong>${foreignText(name)}</strong>` },
          { title: 'State', cell: (row) => stateCell(row, nowMs) },
          { title: 'Last worked', cell: ({ worked_at: at }) => (at === null ? 'not known' : timeAgo(at, nowMs)) },
          { title: 'What failed, and what to do', cell: advice },
        ],
      })}
    </div>
    <p class="quiet small">
      This page calls nothing but the database. A mail service, a sign-in provider and a registry are shown as this
      program saw them since it started.
    </p>`;
  return layout('Dependencies', content);
}

/** Shown instead of the list to members. */
export function dependenciesRefusedPage(message: string): Page {
  return layout('Dependencies', html`${header()} ${alert('info', html`<p>${message}.</p>`)}`);
}

function header(): Html {
  return pageHeader({
    title: 'Dependencies',
    lead: 'What this control plane needs from others, and whether its last use worked.',
  });
}

const ORDER: readonly DependencyState[] = ['stopped', 'failing', 'behind', 'works', 'unused'];

const KINDS: Readonly<Record<DependencyKind, string>> = {
  database: 'Database',
  replica: 'Read replica',
  mail: 'Mail',
  sign_in: 'Sign-in',
  registry: 'Marketplace',
  sink: 'Audit sink',
  source: 'Minted secret',
  push: 'Browser messages',
  sidecars: 'Sidecars',
};

const BADGES: Readonly<Record<DependencyState, Html>> = {
  works: badge('good', 'works'),
  behind: badge('warn', 'behind'),
  failing: badge('bad', 'failing'),
  stopped: badge('bad', 'stopped'),
  unused: badge('plain', 'not used'),
};

function stateCell({ state, since }: DependencyRecord, nowMs: number): Html {
  return html`${BADGES[state]}${since === null ? '' : html` <span class="sub">since ${timeAgo(since, nowMs)}</span>`}`;
}

function advice({ problem, fix }: DependencyRecord): Html {
  return html`${problem === null ? '' : html`<span>${foreignText(problem)}</span>`}${
    fix === null ? '' : html`<span class="sub">${foreignText(fix)}</span>`
  }`;
}
