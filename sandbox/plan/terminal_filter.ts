import { toPrintable } from '../../shared/model/shown_text.ts';

const ESCAPE = String.fromCharCode(0x1b);
/** A colour or style (SGR): the only sequence that changes nothing but how the text after it looks. */
const STYLE = `${ESCAPE}\\[[0-9;:]{0,64}m`;
const KEPT = new RegExp(`^(?:${STYLE}|[\\n\\r\\t])$`);
const PARTS = new RegExp(`(${STYLE}|[\\n\\r\\t])`);
/** The beginning of a style, at the end of a piece. */
const UNFINISHED = new RegExp(`${ESCAPE}(?:\\[[0-9;:]{0,64})?$`);

/**
 * What a step prints, made safe for a terminal: text, line ends, tabs and colours stay; every other control sequence is
 * shown instead of heeded. A step is not to set the window's title, write to the clipboard or draw over our own lines.
 */
export class TerminalFilter {
  readonly #decoder = new TextDecoder();
  #held = '';

  push(chunk: Uint8Array): string {
    return this.#filtered(this.#decoder.decode(chunk, { stream: true }));
  }

  /** What was held back, and a style that ends whatever the step left switched on. */
  end(): string {
    const rest = this.#filtered(this.#decoder.decode());
    const held = this.#held;
    this.#held = '';
    return `${rest}${toPrintable(held)}${ESCAPE}[0m`;
  }

  #filtered(text: string): string {
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
