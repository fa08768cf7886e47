import { toShownLine } from '../../shared/model/shown_text.ts';

/** Full stops of other scripts, which browsers read as dots of a host name (UTS 46). */
const DOT = /[.\u3002\uff0e\uff61](?=\S)/g;
/** Of a scheme or a port, of one or more slashes, and of a mail address or a mention. */
const OTHER = /[:@](?=\S)/g;

/**
 * A name that others chose as one line of which no mail program or chat makes a link: `evil.test` is written as `evil[.]test`, and
 * `https://x` as `https[:]//x`.
 */
export function toUnlinkedLine(text: string, mostCharacters: number): string {
  return toShownLine(text, mostCharacters)
    .replaceAll(DOT, '[.]')
    .replaceAll(OTHER, (character) => `[${character}]`);
}
