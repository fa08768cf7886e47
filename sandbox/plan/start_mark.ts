/**
 * Run by a shell as the step's user, in place of the command: it says that it runs, and becomes the command. The command's
 * words are its arguments and are read by no shell. One that begins with a dash would be taken for an option of exec.
 */
const START_SCRIPT = `printf '%s\\n' "$0" >&2
case $1 in
-*) svc_found=$(command -v -- "$1") || { printf '%s: not found\\n' "$1" >&2; exit 127; }; shift; set -- "$svc_found" "$@"; unset svc_found ;;
esac
exec "$@"`;

/** A command that first writes `mark` as a line of its standard error, from inside of the container and as the step's user. */
export function markCommand(mark: string, command: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', START_SCRIPT, mark, ...command];
}

const LINE_END = 0x0a;

/**
 * Takes the mark out of what a step writes on standard error. Before the mark only the image's own helper writes; a step
 * that writes the mark a second time is passed on as it is.
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

  /** What goes on now: complete lines, until the mark was seen; then everything. */
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

  /** Where a line begins that is the mark; -1 for nowhere. */
  #placeOfMark(text: Buffer): number {
    let at = text.indexOf(this.#mark);
    while (at > 0 && text[at - 1] !== LINE_END) at = text.indexOf(this.#mark, at + 1);
    return at;
  }
}
