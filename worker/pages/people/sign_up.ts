import { html } from 'hono/html';
import type { SignupReply } from '../../../shared/wire/auth.ts';
import { pageHeader } from '../components/page_header.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type RefusedSignIn, refusedWords } from './sign_in.ts';

/** What was typed into the form and refused. */
interface RefusedSignUp extends RefusedSignIn {
  readonly name: string;
}

/** The form to create an account with a password, or set a new password of an existing one. */
export function signUpPage(refused?: RefusedSignUp): Page {
  const content = html`${pageHeader({
      title: 'Sign up, or set a new password',
      lead: 'A code is sent to the address. It sets the password that you choose here.',
    })}
    ${refusedWords(refused?.message)}
    <form class="stack" method="post" action="/sign-up">
      <label class="stacked"
        >Email <br /><input type="email" name="email" value="${refused?.email ?? ''}" autocomplete="username" required
      /></label>
      <label class="stacked"
        >Name, for a new account <br /><input
          name="display_name"
          value="${refused?.name ?? ''}"
          autocomplete="name"
          maxlength="200"
      /></label>
      <label class="stacked"
        >Password, 12 characters or more <br /><input
          type="password"
          name="password"
          autocomplete="new-password"
          minlength="12"
          maxlength="256"
          required
      /></label>
      <button class="primary wide">Send the code</button>
    </form>
    <p><a href="/sign-in">Sign in instead</a></p>`;
  return layout('Sign up', content, 'card');
}

/** Asks for the mailed code; `refused` says why the last one was not accepted. */
export function codePage({ signup_id: id }: Pick<SignupReply, 'signup_id'>, refused?: string): Page {
  const content = html`${pageHeader({
      title: 'Enter the code',
      lead: 'If the address is right, you will receive a mail with a code of eight digits. It is valid for ten minutes.',
    })}
    ${refusedWords(refused)}
    <form class="stack" method="post" action="/sign-up/code">
      <input type="hidden" name="signup_id" value="${id}" />
      <label class="stacked"
        >Code <br /><input
          class="mono"
          name="code"
          inputmode="numeric"
          autocomplete="one-time-code"
          pattern="[0-9]{8}"
          required
      /></label>
      <button class="primary wide">Sign in</button>
    </form>
    <p><a href="/sign-up">Ask for another code</a></p>`;
  return layout('Enter the code', content, 'card');
}
