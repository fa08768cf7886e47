import { html } from 'hono/html';
import type { MarketplaceDetail, MarketplaceReadme } from '../../../shared/wire/marketplace.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignLink, foreignText } from '../components/foreign_text.ts';
import { initials } from '../components/initials.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { inputTable, installPreview } from './install_preview.ts';
import { layout, type Page } from '../frame/layout.ts';
import {
  ecosystemName,
  entryPath,
  entryState,
  freshnessWords,
  iconPath,
  riskLine,
  ruleAlert,
  wizardPath,
} from './marketplace_words.ts';
import { publisherOf } from '../../../shared/mcp/publisher.ts';
import { publisherCommand } from '../../../shared/mcp/publisher_command.ts';
import { replaceHidden, showHidden } from '../../../shared/model/shown_text.ts';

const ABOVE = { path: '/marketplace', title: 'Marketplace' };
const MAX_VERSIONS_SHOWN = 30;

export interface EntryView {
  readonly entry: MarketplaceDetail;
  /** Null: nobody asked for it. */
  readonly readme: MarketplaceReadme | { readonly problem: string } | null;
  /** Whether a user is signed in. */
  readonly isSignedIn: boolean;
  readonly nowMs: number;
}

/** One registry entry: what it is, exactly what an install would start, and its inputs. */
export function marketplaceEntryPage(view: EntryView): Page {
  const { entry, nowMs } = view;
  const title = entry.title ?? entry.name.split('/').at(-1) ?? entry.name;
  const content = html`${pageHeader({
      title: html`<span class="titled"
        >${initials(entry.name, entry.has_icon ? iconPath(entry.name) : null)} <span>${foreignText(title)}</span></span
      >`,
      lead: foreignText(entry.description),
      above: ABOVE,
      actions: entry.preview === null || entry.rule_problem !== null ? '' : installButton(view),
    })}
    ${riskLine(entry)} ${ruleAlert(entry)} ${freshnessWords(entry, nowMs)} ${stateWords(entry)}
    ${installedServers(entry)}
    <section class="panel" aria-labelledby="preview-title">
      <h2 id="preview-title">What an install starts</h2>
      ${entry.preview === null ? notInstallable() : installPreview(entry.preview)}
    </section>
    ${inputs(entry)} ${facts(view)} ${readmeSection(view)} ${options(view)} ${versions(view)}`;
  return layout(showHidden(title), content);
}

function installButton({ entry, isSignedIn }: EntryView): Html {
  const words = isSignedIn ? 'Install' : 'Sign in to install';
  return html`<a class="button primary" href="${wizardPath({ registry_id: entry.name, version: entry.version ?? '' })}"
    >${words}</a
  >`;
}

function stateWords({ status, problems }: MarketplaceDetail): Html {
  const words = {
    active: '',
    deprecated: alert('warn', html`<p><strong>Deprecated.</strong> Its publisher advises against using it.</p>`),
    deleted: alert('bad', html`<p><strong>Deleted.</strong> The registry removed it; it cannot be installed.</p>`),
  };
  const unread = alert(
    'warn',
    html`<p><strong>Part of this entry could not be read</strong></p>
      <ul>
        ${problems.map((problem) => html`<li>${foreignText(problem)}</li>`)}
      </ul>`,
  );
  return html`${words[status]} ${problems.length === 0 ? '' : unread}`;
}

function installedServers({ installed_servers: servers }: MarketplaceDetail): Html | string {
  if (servers.length === 0) return '';
  return alert(
    'good',
    html`<p>
      <strong>Installed</strong> as
      ${servers.map(
        ({ id, name, version }, index) =>
          html`${index === 0 ? '' : ', '}<a href="/mcp-servers/${id}">${name}</a> ${foreignText(version ?? '')}`,
      )}
    </p>`,
  );
}

function notInstallable(): Html {
  return alert('warn', html`<p><strong>It cannot be installed safely.</strong> See the reasons below.</p>`);
}

function inputs({ preview }: MarketplaceDetail): Html | string {
  if (preview === null || preview.inputs.length === 0) return '';
  return html`<section class="panel flush" aria-labelledby="inputs-title">
    <div class="panel-head">
      <h2 id="inputs-title">What it asks for</h2>
      <span class="quiet small">Secrets are stored in the vault</span>
    </div>
    ${inputTable(preview.inputs)}
  </section>`;
}

function facts({ entry, nowMs }: EntryView): Html {
  const { name, version, repository_url: repository, website_url: website, updated_at: updated } = entry;
  return html`<section class="panel" aria-labelledby="about-title">
    <h2 id="about-title">About</h2>
    ${definitionList([
      ['Registry name', html`<code>${foreignText(name)}</code>`],
      ['Publisher', publisherLink(name)],
      ['Version', version === null ? null : html`${foreignText(version)} ${entryState(entry)}`],
      ['Updated', updated === null ? null : timeAgo(updated, nowMs)],
      ['Started by its publisher with', publisherCommands(entry)],
      ['Source code', repository === null ? null : foreignLink(repository)],
      ['Website', website === null ? null : foreignLink(website)],
    ])}
    <p class="quiet small">Or in a terminal, with the same questions:</p>
    ${codeBlock(`svc mcp install ${shellWord(name)}`)}
  </section>`;
}

/** It is asked for by a link, because the control plane then calls a host that the publisher names. */
function readmeSection({ entry, readme, isSignedIn }: EntryView): Html | string {
  if (!isSignedIn) return '';
  const path = pathWith(entryPath(entry.name), { version: entry.version ?? '', readme: '1' });
  return html`<section class="panel" id="readme" aria-labelledby="readme-title">
    <h2 id="readme-title">README</h2>
    ${readme === null ? html`<p><a class="button compact" href="${path}#readme">Show its README</a></p>` : readmeWords(readme)}
  </section>`;
}

function readmeWords(readme: NonNullable<EntryView['readme']>): Html {
  if ('problem' in readme) return html`<p>${readme.problem}</p>`;
  const { text, cut, of, host } = readme;
  return html`<p class="quiet small">
      Of ${foreignText(of)}, as the entry names it, sent by ${host}. Its publisher wrote it: svc has checked nothing in
      it.
    </p>
    <div class="code"><pre>${foreignText(text)}</pre></div>
    ${cut ? html`<p class="quiet small">The rest is left out, because it is too long.</p>` : ''}`;
}

/** The proven namespace, which lists everything that is published in it. */
function publisherLink(name: string): Html {
  const { namespace } = publisherOf(name);
  if (namespace === '') return html`<code>${foreignText(name)}</code>`;
  const path = pathWith('/marketplace', { publisher: namespace });
  return html`<a href="${path}"><code>${foreignText(namespace)}</code></a>`;
}

/** The publisher's own commands for each package; the install derives its own, shown above. */
function publisherCommands({ packages }: MarketplaceDetail): Html | null {
  const commands = packages.flatMap((item) => {
    const words = publisherCommand(item);
    return words === null ? [] : [words.join(' ')];
  });
  if (commands.length === 0) return null;
  return html`<ul class="plain">
    ${commands.map((command) => html`<li><code>${foreignText(command)}</code></li>`)}
  </ul>`;
}

/** A word for a shell, quoted if needed, without invisible characters. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${replaceHidden(word, { keepsLines: false, write: () => '?' }).replaceAll("'", '?')}'`;
}

function options(view: EntryView): Html | string {
  const { entry } = view;
  if (entry.options.length < 2 && entry.preview !== null) return '';
  return html`<section class="panel flush" aria-labelledby="options-title">
    <div class="panel-head"><h2 id="options-title">Ways to install it</h2></div>
    ${dataTable<MarketplaceDetail['options'][number]>({
      caption: 'Ways to install it',
      rows: entry.options,
      columns: [
        {
          title: 'Kind',
          cell: ({ ecosystem }) => html`<span class="tag">${foreignText(ecosystemName(ecosystem))}</span>`,
        },
        {
          title: 'What',
          cell: ({ label, problem }) =>
            html`<code>${foreignText(label)}</code>
              ${problem === null ? '' : html`<span class="sub">${foreignText(problem.message)}</span>`}`,
        },
        { title: 'Choose', isActions: true, cell: (option) => choose(view, option) },
      ],
    })}
  </section>`;
}

function choose({ entry }: EntryView, { kind, index, label, installable }: MarketplaceDetail['options'][number]): Html {
  if (!installable) return badge('plain', 'Not installable');
  const path = wizardPath({ registry_id: entry.name, version: entry.version ?? '', [kind]: String(index) });
  return html`<a class="button compact" href="${path}">Install<span class="hidden-but-read">: ${label}</span></a>`;
}

function versions({ entry, nowMs }: EntryView): Html | string {
  if (entry.versions.length < 2) return '';
  return html`<section class="panel flush" aria-labelledby="versions-title">
    <div class="panel-head"><h2 id="versions-title">Versions</h2></div>
    ${dataTable<MarketplaceDetail['versions'][number]>({
      caption: 'Versions',
      rows: entry.versions.slice(0, MAX_VERSIONS_SHOWN),
      columns: [
        { title: 'Version', cell: ({ version }) => versionLink(entry, version) },
        {
          title: 'State',
          cell: (version) => html`${entryState(version)} ${version.is_latest ? badge('accent', 'Newest') : ''}`,
        },
        {
          title: 'Published',
          cell: ({ published_at: published }) => (published === null ? '' : timeAgo(published, nowMs)),
        },
      ],
    })}
  </section>`;
}

function versionLink(entry: MarketplaceDetail, version: string | null): Html | string {
  if (version === null) return '';
  if (version === entry.version) return html`<strong class="number">${foreignText(version)}</strong> (shown)`;
  return html`<a class="number" href="${pathWith(entryPath(entry.name), { version })}">${foreignText(version)}</a>`;
}
