import { html } from 'hono/html';
import type { ProvidersReply } from '../../../shared/wire/auth.ts';
import { alert } from '../components/alert.ts';
import { codeBlock } from '../components/code_block.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { toSentence } from '../../../shared/model/sentence.ts';

/** The data of the page. */
interface SignInView {
  readonly methods: ProvidersReply;
  readonly isLocal: boolean;
  /** One of our own pages to return to. */
  readonly returnTo: string;
  /** What was tried and refused. */
  readonly refused?: RefusedSignIn | undefined;
}

/** A sign-in that was refused: its message, and the address, which need not be typed again. */
export interface RefusedSignIn {
  readonly message: string;
  readonly email: string;
}

/** The page for a browser that is not signed in. */
export function signInPage({ methods, isLocal, returnTo, refused }: SignInView): Page {
  const email = refused?.email ?? '';
  const query = returnTo === '/' ? '' : `?return_to=${encodeURIComponent(returnTo)}`;
  const content = html`${pageHeader({ title: 'Sign in', lead: 'Credentials stay here, out of your agents’ reach.' })}
    ${refusedWords(refused?.message)} ${isLocal ? localHint() : ''}
    ${methods.providers.map(
      ({ title, login_url: url }) => html`<a class="button wide" href="${url}${query}">Continue with ${title}</a>`,
    )}
    ${methods.password ? html`${isLocal ? html`<hr />` : ''} ${passwordForm(query, email)}` : ''}
    ${isLocal ? '' : ssoForm(returnTo, email)}
    ${methods.providers.length === 0 && !methods.password && !isLocal ? nothingSetUp() : ''}
    <p class="quiet small">The <a href="/docs">API reference</a> needs no sign-in.</p>`;
  return layout('Sign in', content, 'card');
}

/** Why the last try was refused, as a sentence. */
export function refusedWords(message: string | undefined): Html | string {
  return message === undefined ? '' : alert('bad', html`<p>${toSentence(message)}</p>`);
}

function passwordForm(query: string, email: string): Html {
  return html`<form class="stack" method="post" action="/sign-in${query}">
      <label class="stacked"
        >Email <br /><input type="email" name="email" value="${email}" autocomplete="username" required
      /></label>
      <label class="stacked"
        >Password <br /><input type="password" name="password" autocomplete="current-password" maxlength="256" required
      /></label>
      <button class="primary wide">Sign in</button>
    </form>
    <p><a href="/sign-up">Sign up, or set a new password</a></p>`;
}

function ssoForm(returnTo: string, email: string): Html {
  return html`<hr />
    <h2>With your enterprise</h2>
    <form class="stack" method="get" action="/auth/sso">
      <input type="hidden" name="return_to" value="${returnTo}" />
      <label class="stacked"
        >Email <br /><input type="email" name="email" value="${email}" autocomplete="email" required
      /></label>
      <button class="wide">Find its sign-in</button>
    </form>`;
}

/** The link to an enterprise's provider. It is a link because a form may not redirect to another site. */
export function ssoPage({ name, url }: { readonly name: string; readonly url: string }): Page {
  const content = html`${pageHeader({ title: `Sign in to ${name}` })}
    <a class="button primary wide" href="${url}">Continue with ${name}</a>`;
  return layout('Sign in', content, 'card');
}

/** The link to a provider for a browser that comes from another site, which must not start a sign-in by itself. */
export function continuePage({ title, url }: { readonly title: string; readonly url: string }): Page {
  const content = html`${pageHeader({ title: 'Sign in here?' })}
    <p>
      Another site sent you here to sign in to svc with ${title}. This browser will be signed in with your account
      there.
    </p>
    <a class="button primary wide" href="${url}">Continue with ${title}</a>
    <p class="quiet small">
      If you did not mean to sign in, close this page: the other site may want you to use an account of its own.
    </p>`;
  return layout('Sign in?', content, 'card');
}

/** The page at a loopback name, where no browser signs in. */
export function consoleHintPage(): Page {
  const content = html`${pageHeader({ title: 'The console is elsewhere' })}
    <p>
      It has its own host name on this machine, so that no other program receives its cookie. This prints a link to it:
    </p>
    ${codeBlock('svc console')}
    <p class="quiet small">The <a href="/docs">API reference</a> is also here.</p>`;
  return layout('The console is elsewhere', content, 'card');
}

function localHint(): Html {
  return html`<p>
      This browser is not signed in. <code data-command>svc up</code> prints a sign-in link when it starts. This prints
      another one:
    </p>
    ${codeBlock('svc console')}`;
}

function nothingSetUp(): Html {
  return html`<p>No way to sign in is configured: see docs/sign-in.md.</p>`;
}
