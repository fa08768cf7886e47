import { html } from 'hono/html';
import type { ProvidersReply } from '../../shared/wire/auth.ts';
import { type Html, layout } from './layout.ts';

/** What the page shows. */
export interface SignInView {
  readonly methods: ProvidersReply;
  readonly isLocal: boolean;
  /** A page of ours. */
  readonly returnTo: string;
}

/** The page for a browser that is not signed in. */
export function signInPage({ methods, isLocal, returnTo }: SignInView): Html {
  const query = returnTo === '/' ? '' : `?return_to=${encodeURIComponent(returnTo)}`;
  return layout(
    'Sign in',
    html`<h1>Sign in</h1>
      ${methods.providers.map(
        ({ title, login_url: url }) => html`<p><a class="button" href="${url}${query}">Continue with ${title}</a></p>`,
      )}
      ${methods.password ? passwordForm(query) : ''} ${isLocal ? localHint() : ssoForm(returnTo)}
      ${methods.providers.length === 0 && !methods.password && !isLocal ? nothingSetUp() : ''}
      <p class="quiet">The <a href="/docs">API reference</a> needs no sign-in.</p>`,
  );
}

function passwordForm(query: string): Html {
  return html`<form class="fields-of-a-form" method="post" action="/sign-in${query}">
      <label>Email <br /><input type="email" name="email" autocomplete="username" required /></label>
      <label
        >Password <br /><input type="password" name="password" autocomplete="current-password" maxlength="256" required
      /></label>
      <button>Sign in</button>
    </form>
    <p><a href="/sign-up">Sign up, or set a new password</a></p>`;
}

function ssoForm(returnTo: string): Html {
  return html`<h2>With your enterprise</h2>
    <form class="fields-of-a-form" method="get" action="/auth/sso">
      <input type="hidden" name="return_to" value="${returnTo}" />
      <label>Email <br /><input type="email" name="email" autocomplete="email" required /></label>
      <button>Find its sign-in</button>
    </form>`;
}

/** The way to the provider of an enterprise. It is a link: a form may not lead to another site. */
export function ssoPage({ name, url }: { readonly name: string; readonly url: string }): Html {
  return layout(
    'Sign in',
    html`<h1>Sign in to ${name}</h1>
      <p><a class="button" href="${url}">Continue with ${name}</a></p>`,
  );
}

/** The way to a provider for who comes from another site, which may not begin a sign-in by itself. */
export function continuePage({ title, url }: { readonly title: string; readonly url: string }): Html {
  return layout(
    'Sign in?',
    html`<h1>Sign in here?</h1>
      <p>
        Another site led you here, to sign in to svc with ${title}. This browser will be signed in as whoever you are
        there.
      </p>
      <p><a class="button" href="${url}">Continue with ${title}</a></p>
      <p class="quiet">
        If you did not mean to sign in, close this page: whoever sent you may want you to use an account of theirs.
      </p>`,
  );
}

function localHint(): Html {
  return html`<p>
      This browser is not signed in. <code>svc up</code> prints a sign-in link when it starts, and this makes another
      one:
    </p>
    <pre>svc api POST /v1/sign-in-links</pre>`;
}

function nothingSetUp(): Html {
  return html`<p>No way to sign in is set up here: docs/sign-in.md says how to set one up.</p>`;
}
