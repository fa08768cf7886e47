import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** At the beginning of a line, after variables. */
const OWN_COMMAND = /^((?:[A-Z_]+=\S+ )*)svc (?=\S)/gm;

/** The document with our commands as they are called on this machine. `words` are the program and its global options. */
export function nameCommands(document: string, words: readonly string[]): string {
  const program = escapeHtml(words.map(shellWord).join(' '));
  return document.replaceAll(/(<code data-command>)([^<]*)/g, (_, tag: string, text: string) => {
    return tag + text.replaceAll(OWN_COMMAND, (__, before: string) => `${before}${program} `);
  });
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** A command or a text to copy. A script adds the button, because it does not work without one. */
export function codeBlock(text: string): Html {
  return html`<div class="code" data-island="copy" data-own="${text}">
    <pre><code ${text.search(OWN_COMMAND) < 0 ? '' : 'data-command'}>${text}</code></pre>
  </div>`;
}
