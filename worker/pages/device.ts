import { html } from 'hono/html';
import type { WaitingProgram } from '../tokens/device_approval.ts';
import { type Html, layout } from './layout.ts';

/** Where a person types the code that a program shows. It is typed, and never in a link: a link can be sent by anybody. */
export function devicePage(problem: string | null): Html {
  return layout(
    'Sign a program in',
    html`<h1>Sign a program in</h1>
      ${problem === null ? '' : html`<p role="alert"><strong>${problem}</strong></p>`}
      <form method="post" action="/device" class="fields-of-a-form">
        <label for="user_code">Type the code that <code>svc login</code> shows in your own terminal.</label>
        <input
          id="user_code"
          name="user_code"
          required
          autofocus
          autocomplete="off"
          autocapitalize="characters"
          spellcheck="false"
          maxlength="20"
          placeholder="XXXX-XXXX"
        />
        <p><button type="submit">Continue</button></p>
      </form>
      <p class="quiet">
        Did somebody send you a code? Whoever sent it wants to act as you: do not type it, and close this page.
      </p>`,
  );
}

/** Who asks, and the question. */
export function deviceQuestionPage(program: WaitingProgram, typed: string): Html {
  return layout(
    'Sign a program in?',
    html`<h1>Sign this program in as you?</h1>
      ${about(program)}
      <p>It will be able to do all that you may do here, and to enrol a sidecar that is given your credentials.</p>
      <form method="post" action="/device/decide">
        <input type="hidden" name="user_code" value="${typed}" />
        <p>
          <button type="submit" name="decision" value="approve">Sign it in</button>
          <button type="submit" name="decision" value="deny">Turn it away</button>
        </p>
      </form>
      <p class="quiet">Turn it away unless you started it yourself, a moment ago, at this address.</p>`,
  );
}

export function deviceDecidedPage(program: WaitingProgram, decision: 'approve' | 'deny'): Html {
  const title = decision === 'approve' ? 'Signed in' : 'Turned away';
  return layout(
    title,
    html`<h1>${title}</h1>
      ${about(program)}
      <p>${decision === 'approve' ? 'Go back to your terminal: it goes on by itself.' : 'It was not signed in.'}</p>`,
  );
}

function about({ client, address, requestedAt }: WaitingProgram): Html {
  return html`<dl>
    <dt>It calls itself</dt>
    <dd>${client}</dd>
    <dt>It called from</dt>
    <dd>${address}</dd>
    <dt>At (UTC)</dt>
    <dd><time datetime="${requestedAt}">${requestedAt.slice(0, 19).replace('T', ' ')}</time></dd>
  </dl>`;
}
