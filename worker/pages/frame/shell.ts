import { html } from 'hono/html';
import { hasRole, type Role } from '../../../shared/model/role.ts';
import type { Assets } from './assets.ts';
import { NOT_SENT, notSentAlert } from '../components/alert.ts';
import { tabs } from '../components/tabs.ts';
import { icon } from '../components/icon.ts';
import type { Html } from './html.ts';
import type { Page } from './layout.ts';
import { paletteTemplate } from './palette.ts';
import { type Theme, themeSwitch } from './theme.ts';
import { entryOf, NAVIGATION, type NavigationEntry, type NavigationPage } from './navigation.ts';

/** The signed-in user, shown on every page. */
export interface Person {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly enterprise: string;
  /** How many requests wait for the user's decision. */
  readonly waiting: number;
  /** The user of a control plane on this machine, where there is only one enterprise. */
  readonly isLocal: boolean;
}

/** The frame around a page. */
interface Frame {
  readonly assets: Assets;
  /** Null on public pages. */
  readonly person: Person | null;
  /** The requested path, and its query. */
  readonly path: string;
  readonly search: string;
  readonly theme: Theme;
}

/** A whole document. It has no inline scripts, handlers or styles; only our own files run or style it. */
export function renderPage(page: Page, frame: Frame): Html {
  const { assets, person } = frame;
  const waiting = person?.waiting ?? 0;
  const [calm, alarmed] = [assets.urlOf('icon.svg'), assets.urlOf('icon_waiting.svg')];
  return html`<!doctype html>
    <html lang="en" data-theme="${frame.theme}" ${person?.isLocal === true ? 'data-local' : ''}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${waiting > 0 ? `(${waiting}) ` : ''}${page.title} · svc</title>
        <link
          rel="icon"
          type="image/svg+xml"
          href="${waiting > 0 ? alarmed : calm}"
          data-calm="${calm}"
          data-waiting="${alarmed}"
        />
        <link rel="stylesheet" href="${assets.urlOf('style.css')}" />
        <script type="module" src="${assets.urlOf('console.js')}"></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to content</a>
        ${person === null ? publicFrame(page) : consoleFrame(page, frame, person)}
      </body>
    </html>`;
}

function publicFrame(page: Page): Html {
  return html`<div class="public">
    <header class="public-bar">
      ${brand()}
      <nav aria-label="Site">
        <a href="/marketplace">Marketplace</a>
        <a href="/">Console</a>
        <a href="/docs">API reference</a>
      </nav>
    </header>
    ${main(page)}
  </div>`;
}

function consoleFrame(page: Page, { path, search, theme }: Frame, person: Person): Html {
  const switches = themeSwitch(theme, path + keptQuery(path, search));
  return html`<header class="bar">
      ${brand()}
      <details class="menu">
        <summary>${icon('menu')} Menu</summary>
        <div class="menu-sheet">
          ${findLink()} ${navigation(path, 'Menu', person)} ${switches} ${TIMES} ${signedIn(person)}
        </div>
      </details>
    </header>
    <div class="frame">
      <header class="side">
        ${brand()} ${findLink()} ${navigation(path, 'Console', person)}
        <div class="foot stack">${switches} ${TIMES} ${signedIn(person)}</div>
      </header>
      ${main(page, html`${siblingTabs(path, search, person)} ${doneIn(search) === NOT_SENT ? notSentAlert() : ''}`)}
    </div>
    ${path === '/find' ? '' : paletteTemplate()}
    <p
      class="hidden-but-read"
      role="status"
      data-island="waiting"
      data-events="connector.approval."
      data-count="${person.waiting}"
      data-user="${person.id}"
    ></p>`;
}

/** The page of a device takes nothing from its address, which anybody could send; addresses of a sign-in have codes. */
const WITHOUT_QUERY = /^\/(?:device$|auth\/)/;

/** The query after another look was chosen. The message after a change is not shown again. */
function keptQuery(path: string, search: string): string {
  if (WITHOUT_QUERY.test(path)) return '';
  const query = new URLSearchParams(search);
  if (!query.has('done')) return search;
  query.delete('done');
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function doneIn(search: string): string | null {
  return new URLSearchParams(search).get('done');
}

/** Where the switch of the times is put. */
const TIMES = html`<div data-island="local-times"></div>`;

function main({ content, width }: Page, above: Html | string = ''): Html {
  return html`<main id="main" tabindex="-1">
    <div class="page ${width}">${above} ${content}</div>
  </main>`;
}

function brand(): Html {
  return html`<a class="brand" href="/">${icon('mark')} svc</a>`;
}

/** With scripts, and by Ctrl-K on each page, the search opens in a dialog. */
function findLink(): Html {
  return html`<a class="button wide find" href="/find" data-island="palette" aria-keyshortcuts="Control+K Meta+K"
    >Find <kbd aria-hidden="true">Ctrl K</kbd></a
  >`;
}

function navigation(path: string, label: string, { waiting }: Person): Html {
  return html`<nav aria-label="${label}">
    ${NAVIGATION.map(
      ({ title, entries }) =>
        html`<div class="nav-group">
          <h2>${title}</h2>
          <ul>
            ${entries.map((entry) => html`<li>${link(entry, path, waiting)}</li>`)}
          </ul>
        </div>`,
    )}
  </nav>`;
}

function link(entry: NavigationEntry, path: string, waiting: number): Html {
  const count = html`<span class="count" data-waiting>${waiting > 0 ? waiting : ''}</span>`;
  const content = html`${icon(entry.icon)} ${entry.title} ${entry.path === '/approvals' ? count : ''}`;
  if (entry.path === path) return html`<a href="${entry.path}" aria-current="page">${content}</a>`;
  return entryOf(path)?.path === entry.path
    ? html`<a href="${entry.path}" aria-current="true">${content}</a>`
    : html`<a href="${entry.path}">${content}</a>`;
}

/** Whether an address shows the page, or one that is listed after it and asks for more. */
function isAt(page: NavigationPage, path: string, search: string): boolean {
  const [own, query = ''] = page.path.split('?');
  const asked = new URLSearchParams(search);
  return own === path && [...new URLSearchParams(query)].every(([name, value]) => asked.get(name) === value);
}

/** The other pages of the same entry. Those for other roles, or without a meaning in local mode, are left out. */
function siblingTabs(path: string, search: string, { role, isLocal }: Person): Html | string {
  const isShown = (page: NavigationPage) => isAt(page, path, search);
  const entry = NAVIGATION.flatMap(({ entries }) => entries).find(({ pages = [] }) => pages.some(isShown));
  if (entry === undefined) return '';
  const current = entry.pages?.findLast(isShown);
  const shown = (entry.pages ?? []).filter(
    (each) => (each.role === undefined || hasRole(role, each.role)) && !(isLocal && each.hostedOnly === true),
  );
  return tabs(
    entry.title,
    shown.map((each) => ({ path: each.path, title: each.title, isCurrent: each === current })),
  );
}

function signedIn({ name, role, enterprise, isLocal }: Person): Html {
  return html`<div class="person">
    <div class="small">
      <span class="quiet">Signed in as</span> <strong>${name}</strong>
      <div class="quiet">
        ${
          isLocal
            ? 'on this machine'
            : html`${role} of <a href="/enterprises" title="Switch enterprise">${enterprise}</a>`
        }
      </div>
    </div>
    <form method="post" action="/auth/logout"><button class="compact wide">Sign out</button></form>
  </div>`;
}
