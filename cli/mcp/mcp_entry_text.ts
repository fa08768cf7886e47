import type { InstallPreview, MarketplaceInput } from '../../shared/wire/marketplace.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Paint } from '../terminal/output.ts';
import { showHidden } from '../../shared/model/shown_text.ts';

/** A publisher's text for a terminal: invisible and direction characters are escaped. */
export function formatPublished(text: string): string {
  return toPrintable(showHidden(text));
}

/** The path of an entry in the API. */
export function entryPath(name: string, action = ''): string {
  return `/v1/marketplace/servers/${encodeURIComponent(name)}${action}`;
}

/** Quotes a word of a command where needed; for display only. */
export function wordText(word: string): string {
  const text = formatPublished(word);
  return /^[\w@%+=:,./{}-]+$/.test(text) ? text : JSON.stringify(text);
}

/** The command that would be started, or the URL that would be called. */
interface Started {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The exact command or URL, line by line. */
export function formatStarted({ command, env, url, headers }: Started, paint: Paint): readonly string[] {
  const what = url === null ? command.map((word) => wordText(word)).join(' ') : formatPublished(url);
  return [
    `${url === null ? 'runs on your machines' : 'calls'}:`,
    `    ${paint('cyan', what)}`,
    ...Object.entries(env).map(([name, value]) => `    ${formatPublished(name)}=${formatPublished(value)}`),
    ...Object.entries(headers).map(([name, value]) => `    ${formatPublished(name)}: ${formatPublished(value)}`),
  ];
}

/** Warnings, and the inputs that the server asks for. */
export function adviceLines({ inputs, warnings }: InstallPreview, paint: Paint): readonly string[] {
  return [
    ...(inputs.length === 0 ? [] : ['takes:']),
    ...inputs.map((input) => `    ${inputText(input)}`),
    ...warnings.map(({ message }) => `${paint('yellow', 'warning:')} ${formatPublished(message)}`),
  ];
}

function inputText({ name, description, required, secret, default: fallback, choices, goes_to }: MarketplaceInput) {
  const kind = [required ? 'required' : 'optional', ...(secret ? ['secret'] : []), ...goes_to].join(', ');
  const given = [
    ...(choices.length === 0 ? [] : [`one of ${choices.join(', ')}`]),
    ...(fallback === null ? [] : [`default ${fallback}`]),
  ];
  const text = [description, ...given].filter((part) => part !== '').join('; ');
  return formatPublished(`${name} (${kind})${text === '' ? '' : `: ${text}`}`);
}
