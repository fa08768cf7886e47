import { html } from 'hono/html';
import type { SignupReply } from '../../shared/wire/auth.ts';
import { type Html, layout } from './layout.ts';

/** The form for an account with a password, or for another password of one that there is. */
export function signUpPage(): Html {
  return layout(
    'Sign up',
    html`<h1>Sign up, or set a new password</h1>
      <p>A code is sent to the address. It sets the password that you choose here.</p>
      <form class="fields-of-a-form" method="post" action="/sign-up">
        <label>Email <br /><input type="email" name="email" autocomplete="username" required /></label>
        <label>Name, for a new account <br /><input name="display_name" autocomplete="name" maxlength="200" /></label>
        <label
          >Password, 12 characters or more <br /><input
            type="password"
            name="password"
            autocomplete="new-password"
            minlength="12"
            maxlength="256"
            required
        /></label>
        <button>Send the code</button>
      </form>`,
  );
}

/** Asks for the code of the mail. */
export function codePage({ signup_id: id }: SignupReply): Html {
  return layout(
    'Enter the code',
    html`<h1>Enter the code</h1>
      <p>If the address is right, a mail with a code of eight digits is on its way. It is good for ten minutes.</p>
      <form class="fields-of-a-form" method="post" action="/sign-up/code">
        <input type="hidden" name="signup_id" value="${id}" />
        <label
          >Code <br /><input name="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9]{8}" required
        /></label>
        <button>Sign in</button>
      </form>`,
  );
}
