import type { InstallPreview, MarketplaceInput } from '../../shared/wire/marketplace.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Paint } from '../terminal/output.ts';
import { showHidden } from '../../shared/model/shown_text.ts';

/** A publisher's text on a terminal: what would not be seen, or would turn the rest around, is written out. */
export function published(text: string): string {
  return toPrintable(showHidden(text));
}

/** The path of an entry in the API. */
export function entryPath(name: string, action = ''): string {
  return `/v1/marketplace/servers/${encodeURIComponent(name)}${action}`;
}

/** A word of a command as it can be told apart from the next one; for reading alone. */
export function wordText(word: string): string {
  const text = published(word);
  return /^[\w@%+=:,./{}-]+$/.test(text) ? text : JSON.stringify(text);
}

/** What would be started or called. */
interface Started {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Exactly what runs, line by line. */
export function startedLines({ command, env, url, headers }: Started, paint: Paint): readonly string[] {
  const what = url === null ? command.map((word) => wordText(word)).join(' ') : published(url);
  return [
    `${url === null ? 'runs on your machines' : 'calls'}:`,
    `    ${paint('cyan', what)}`,
    ...Object.entries(env).map(([name, value]) => `    ${published(name)}=${published(value)}`),
    ...Object.entries(headers).map(([name, value]) => `    ${published(name)}: ${published(value)}`),
  ];
}

/** What a person should know before, and what is asked for. */
export function adviceLines({ inputs, warnings }: InstallPreview, paint: Paint): readonly string[] {
  return [
    ...(inputs.length === 0 ? [] : ['takes:']),
    ...inputs.map((input) => `    ${inputText(input)}`),
    ...warnings.map(({ message }) => `${paint('yellow', 'warning:')} ${published(message)}`),
  ];
}

function inputText({ name, description, required, secret, default: fallback, choices, goes_to }: MarketplaceInput) {
  const kind = [required ? 'required' : 'optional', ...(secret ? ['secret'] : []), ...goes_to].join(', ');
  const given = [
    ...(choices.length === 0 ? [] : [`one of ${choices.join(', ')}`]),
    ...(fallback === null ? [] : [`default ${fallback}`]),
  ];
  const text = [description, ...given].filter((part) => part !== '').join('; ');
  return published(`${name} (${kind})${text === '' ? '' : `: ${text}`}`);
}
