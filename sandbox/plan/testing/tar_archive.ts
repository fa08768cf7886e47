/** An entry as a test writes it; what is left out is what an ordinary file has. */
export interface ArchiveEntry {
  readonly name: string;
  readonly type?: string;
  readonly content?: string | Buffer;
  readonly target?: string;
  readonly mode?: number;
  readonly uid?: number;
  /** What the header says, when it is not the content's size. */
  readonly size?: number;
}

/** A ustar archive, as plain as can be. */
export function archive(...entries: readonly ArchiveEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap((entry) => archiveEntry(entry)), Buffer.alloc(1024)]);
}

/** A pax header for the entry after it. */
export function paxEntry(fields: Readonly<Record<string, string>>): ArchiveEntry {
  const records = Object.entries(fields).map(([key, value]) => {
    const rest = Buffer.byteLength(` ${key}=${value}\n`);
    let length = rest + 1;
    while (rest + String(length).length !== length) length += 1;
    return `${length} ${key}=${value}\n`;
  });
  return { name: 'pax', type: 'x', content: records.join('') };
}

function archiveEntry(entry: ArchiveEntry): Buffer[] {
  const content = Buffer.from(entry.content ?? '');
  const header = Buffer.alloc(512);
  header.write(entry.name, 0, 100);
  header.write(octal(entry.mode ?? 0o644, 8), 100);
  header.write(octal(entry.uid ?? 1000, 8), 108);
  header.write(octal(1000, 8), 116);
  header.write(octal(entry.size ?? content.length, 12), 124);
  header.write(octal(0, 12), 136);
  header.write(' '.repeat(8), 148);
  header.write(entry.type ?? '0', 156);
  header.write(entry.target ?? '', 157, 100);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}
