/**
 * Run by a shell as the step's user instead of the command: prints the mark, then replaces itself with the command. The
 * command's words are passed as arguments, so no shell interprets them. `exec` would read a name with a leading dash as an
 * option.
 */
const START_SCRIPT = `printf '%s\\n' "$0" >&2
case $1 in
-*) svc_found=$(command -v -- "$1") || { printf '%s: not found\\n' "$1" >&2; exit 127; }; shift; set -- "$svc_found" "$@"; unset svc_found ;;
esac
exec "$@"`;

/** A command that first writes `mark` as a line to its standard error, inside the container and as the step's user. */
export function markCommand(mark: string, command: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', START_SCRIPT, mark, ...command];
}

const LINE_END = 0x0a;

/**
 * Removes the mark from the standard error of a step. Before the mark only the image's helper writes. If the step writes the
 * mark again, it is passed on.
 */
export class StartMark {
  readonly #mark: Buffer;
  readonly #onBegan: () => void;
  #held: Buffer = Buffer.alloc(0);
  #began = false;

  constructor(mark: string, onBegan: () => void) {
    this.#mark = Buffer.from(`${mark}\n`);
    this.#onBegan = onBegan;
  }

  get began(): boolean {
    return this.#began;
  }

  /** Returns the bytes to pass on: until the mark, complete lines; then everything. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#began) return chunk;
    const text = Buffer.concat([this.#held, chunk]);
    const at = this.#placeOfMark(text);
    if (at !== -1) {
      this.#began = true;
      this.#held = Buffer.alloc(0);
      this.#onBegan();
      return Buffer.concat([text.subarray(0, at), text.subarray(at + this.#mark.length)]);
    }
    const end = text.lastIndexOf(LINE_END) + 1;
    this.#held = text.subarray(end);
    return text.subarray(0, end);
  }

  end(): Uint8Array {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** The position of the line with the mark; -1 if there is none. */
  #placeOfMark(text: Buffer): number {
    let at = text.indexOf(this.#mark);
    while (at > 0 && text[at - 1] !== LINE_END) at = text.indexOf(this.#mark, at + 1);
    return at;
  }
}
