import { html } from 'hono/html';
import { mcpCredentialAt } from '../../../shared/model/mcp_server.ts';
import { VAULT_SCHEME } from '../../../shared/model/vault_path.ts';
import type { Sealability, UnsealedRelease } from '../../../shared/report/sealability.ts';
import type { OpenCredential, SealabilityReport } from '../../services/audit/sealability_report.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { emitWords, schemeTitle } from '../bindings/scheme_words.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { sessionPath } from './event_table.ts';
import { layout, type Page } from '../frame/layout.ts';
import { sealingWays } from './report_ways.ts';
import { tag } from '../components/tag.ts';

/** The limit of cards; the command shows more. */
const MOST_SHOWN = 100;

interface ReportView {
  readonly report: SealabilityReport;
  readonly nameOf: NameOf;
  readonly nowMs: number;
}

/** The data of `svc report sealability`: sealed credentials, exposed ones, and those that nothing uses. */
export function reportPage(view: ReportView): Page {
  const { open, sealed, releases } = view.report;
  const exposed = open.filter(({ unsealed }) => unsealed !== null);
  const unused = open.filter(({ unsealed }) => unsealed === null);
  const content = html`${pageHeader({
    title: 'Exposure',
    lead: 'Which credentials stay outside of every sandbox, which an agent received in plaintext, and what would seal them again.',
    actions: html`<a class="button" href="${RELEASES_PATH}">Exposures in the audit log</a>`,
  })}
  ${
    open.length + sealed.length === 0
      ? html`<div class="panel flush">${noSecrets()}</div>`
      : html`${tiles(view.report)} ${notes(view.report)}
        ${exposed.length === 0 ? noneExposed() : cards(view, EXPOSED, exposed)} ${sealedSection(sealed)}
        ${cards(view, UNUSED, unused)}`
  }
  ${releaseSection(releases, view)}`;
  return layout('Exposure', content);
}

const RELEASES_PATH = pathWith('/audit', { type: 'sandbox.proxy.credential_unsealed' });

function noSecrets(): Html {
  return emptyState({
    title: 'There are no credentials yet',
    next: 'The vault is empty. Store a credential, and bind it to its host.',
    command: 'svc secret set user/demo',
    action: html`<a class="button primary" href="/secrets/new">Store a secret</a>`,
  });
}

function tiles({ open, sealed }: SealabilityReport): Html {
  const handedOut = open.filter(({ unsealed }) => unsealed !== null).length;
  const all = [
    { count: sealed.length, words: 'sealed', path: '#sealed' },
    { count: open.length - handedOut, words: 'not used', path: '#unused' },
    { count: handedOut, words: 'exposed', path: '#exposed' },
  ];
  return html`<ul class="tiles">
    ${all.map(({ count, words, path }) => {
      const content = html`<strong>${count}</strong> ${words}`;
      return html`<li>
        ${count === 0 ? html`<div class="tile">${content}</div>` : html`<a href="${path}">${content}</a>`}
      </li>`;
    })}
  </ul>`;
}

function notes({ open, sealed, isWhole }: SealabilityReport): Html | string {
  if (isWhole && open.length <= MOST_SHOWN && sealed.length <= MOST_SHOWN) return '';
  const which = isWhole ? 'Only the first of each list are shown.' : 'There is more than this page reads.';
  return alert('info', html`<p>${which} The full report: <code data-command>svc report sealability</code></p>`);
}

function noneExposed(): Html {
  return alert('good', html`<p><strong>No credential is exposed.</strong> No agent received any current value.</p>`);
}

const EXPOSED = { id: 'exposed', title: 'Exposed' };
const UNUSED = { id: 'unused', title: 'Not used' };

function cards(view: ReportView, { id, title }: typeof EXPOSED, credentials: readonly OpenCredential[]): Html | string {
  if (credentials.length === 0) return '';
  return html`<section class="stack" id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${credentials.slice(0, MOST_SHOWN).map((each) => openCredential(each, view))}
  </section>`;
}

function openCredential(credential: OpenCredential, view: ReportView): Html {
  const { ref, owner, unsealed, bindings, how_to_seal: lines } = credential;
  return html`<article class="panel stack">
    <div class="panel-head">
      <h3><code>${ref}</code> ${tag(owner, 'hosted-only')}</h3>
      ${unsealed === null ? badge('plain', 'Not used') : badge('bad', 'Exposed')}
    </div>
    <p>${unsealed === null ? 'No binding uses it, so no request gets it.' : exposedWords(unsealed, view)}</p>
    ${bindings.length === 0 ? '' : html`<p>It is also bound to ${bindingLinks(bindings)}.</p>`}
    <div>
      <p><strong>${unsealed === null ? 'What would use it' : 'What would seal it'}</strong></p>
      <ul class="reasons">
        ${sealingWays(credential).map((way) => html`<li>${way}</li>`)}
      </ul>
    </div>
    ${codeBlock(lines.join('\n'))}
  </article>`;
}

function exposedWords(
  { time, session_id: session, image, host, reason }: NonNullable<Sealability['unsealed']>,
  { nameOf, nowMs }: ReportView,
): Html {
  return html`The current value was exposed ${timeAgo(time, nowMs)}, for <code>${foreignText(host ?? 'no host')}</code>,
    to
    ${session === null ? 'no session' : html`the session ${sessionLink(session, nameOf)}`}${
      image === null ? '' : html` of the image <code>${foreignText(image)}</code>`
    }.
    Reason: “${foreignText(reason ?? 'none')}”.`;
}

function sessionLink(session: string, nameOf: NameOf): Html {
  const name = nameOf(session);
  return html`<a href="${sessionPath(session)}" title="${session}"
    >${name === null ? html`<span class="mono">${session}</span>` : foreignText(name)}</a
  >`;
}

function bindingLinks(bindings: Sealability['bindings']): Html {
  return html`${bindings.map(
    ({ id, host }, index) => html`${index === 0 ? '' : ', '}<a class="mono" href="/bindings/${id}">${host}</a>`,
  )}`;
}

function sealedSection(sealed: readonly Sealability[]): Html | string {
  if (sealed.length === 0) return '';
  return html`<section class="panel flush" id="sealed" aria-labelledby="sealed-title">
    <div class="panel-head"><h2 id="sealed-title">Sealed</h2></div>
    ${dataTable<Sealability>({
      caption: 'Sealed credentials',
      rows: sealed.slice(0, MOST_SHOWN),
      columns: [
        { title: 'Credential', cell: ({ ref }) => html`<code>${ref}</code>` },
        { title: 'Owner', cell: ({ owner }) => tag(owner), isHostedOnly: true },
        { title: 'By', cell: (item) => sealedByCell(item) },
      ],
    })}
  </section>`;
}

function sealedByCell({ kept_for: keptFor, ref, bindings }: Sealability): Html | string {
  const { serverId = '' } = mcpCredentialAt(ref.slice(VAULT_SCHEME.length)) ?? {};
  if (keptFor === 'connector') return html`the <a href="/connectors">connector</a> it was stored for`;
  if (keptFor === 'mcp_server') return html`the <a href="/mcp-servers/${serverId}">MCP server</a> it was stored for`;
  return html`${bindings.map(
    ({ id, host, scheme, emit_mechanism: emit }) =>
      html`<div>
        <a class="mono" href="/bindings/${id}">${host}</a> ${tag(schemeTitle(scheme))}
        ${emit === 'inject' ? '' : tag(emitWords(emit))}
      </div>`,
  )}`;
}

function releaseSection(releases: readonly UnsealedRelease[], view: ReportView): Html {
  return html`<section class="panel flush" aria-labelledby="releases-title">
    <div class="panel-head"><h2 id="releases-title">Exposures</h2></div>
    ${releases.length === 0 ? noReleases() : releaseTable(releases, view)}
  </section>`;
}

function noReleases(): Html {
  return html`<div class="empty">
    <h2>No credential was exposed</h2>
    <p>
      A program that no binding can serve gets its credential in plaintext with
      <code data-command>svc launch --unsealed</code>. That asks for a reason, which is listed here.
    </p>
  </div>`;
}

function releaseTable(releases: readonly UnsealedRelease[], { nameOf, nowMs }: ReportView): Html {
  return dataTable<UnsealedRelease>({
    caption: 'Exposures',
    rows: releases.slice(0, MOST_SHOWN),
    columns: [
      { title: 'Time', cell: ({ time }) => timeAgo(time, nowMs) },
      { title: 'Credential', cell: ({ ref }) => html`<code>${foreignText(ref)}</code>` },
      { title: 'For', cell: ({ host }) => html`<span class="mono">${foreignText(host ?? '')}</span>` },
      {
        title: 'To',
        cell: ({ session_id: session, image }) =>
          html`${session === null ? '' : sessionLink(session, nameOf)}
          ${image === null ? '' : html`<span class="sub mono">${foreignText(image)}</span>`}`,
      },
      { title: 'Because', cell: ({ reason }) => foreignText(reason ?? '') },
      {
        title: 'Why',
        isActions: true,
        cell: ({ event_id: id, ref }) =>
          html`<a class="nowrap" href="/audit/${id}">Event<span class="hidden-but-read"> of ${ref}</span></a>`,
      },
    ],
  });
}
