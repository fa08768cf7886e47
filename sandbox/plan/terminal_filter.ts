import { toPrintable } from '../../shared/model/shown_text.ts';

const ESCAPE = String.fromCharCode(0x1b);
/** A colour or style (SGR): the only sequence that changes only the look of the text after it. */
const STYLE = `${ESCAPE}\\[[0-9;:]{0,64}m`;
const KEPT = new RegExp(`^(?:${STYLE}|[\\n\\r\\t])$`);
const PARTS = new RegExp(`(${STYLE}|[\\n\\r\\t])`);
/** An incomplete style at the end of a piece. */
const UNFINISHED = new RegExp(`${ESCAPE}(?:\\[[0-9;:]{0,64})?$`);

/**
 * Makes the output of a step safe for a terminal: text, line ends, tabs and colours stay; every other control sequence is
 * made visible. So a step cannot set the window's title, write to the clipboard or overwrite our own lines.
 */
export class TerminalFilter {
  readonly #decoder = new TextDecoder();
  #held = '';

  push(chunk: Uint8Array): string {
    return this.#filterText(this.#decoder.decode(chunk, { stream: true }));
  }

  /** The rest, and a style reset for what the step left switched on. */
  end(): string {
    const rest = this.#filterText(this.#decoder.decode());
    const held = this.#held;
    this.#held = '';
    return `${rest}${toPrintable(held)}${ESCAPE}[0m`;
  }

  #filterText(text: string): string {
    const whole = this.#held + text;
    const unfinished = UNFINISHED.exec(whole);
    this.#held = unfinished?.[0] ?? '';
    const done = unfinished === null ? whole : whole.slice(0, unfinished.index);
    return done
      .split(PARTS)
      .map((part) => (KEPT.test(part) ? part : toPrintable(part)))
      .join('');
  }
}
