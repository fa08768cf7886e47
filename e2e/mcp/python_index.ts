import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';

/** One wheel, as its publisher writes it. */
export interface TestWheel {
  readonly name: string;
  readonly version: string;
  /** Its modules and other files. */
  readonly files: Readonly<Record<string, string>>;
  readonly requires?: readonly string[];
  readonly requiresPython?: string;
  /** Console scripts, such as `{ server: 'module:main' }`. */
  readonly scripts?: Readonly<Record<string, string>>;
}

/** A file of the index that is no wheel of ours. */
interface OtherFile {
  readonly project: string;
  readonly file: string;
  readonly content: Buffer;
}

/** A simple index (PEP 503) on this machine. */
export interface TestIndex {
  /** The value of `PIP_INDEX_URL`. */
  readonly url: string;
  readonly requests: readonly string[];
  publish(wheel: TestWheel): void;
  add(file: OtherFile): void;
  /** Is asked before each answer; the request waits for it. */
  beforeAnswer: (path: string) => Promise<void>;
  stop(): Promise<void>;
}

interface Published {
  readonly content: Buffer;
  /** The hash that the index states. */
  readonly sha256: string;
  readonly requiresPython: string | null;
}

const sha256Of = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

export async function startPythonIndex(wheels: readonly TestWheel[] = []): Promise<TestIndex> {
  const projects = new Map<string, Map<string, Published>>();
  const requests: string[] = [];
  const add = (project: string, file: string, content: Buffer, requiresPython: string | null): void => {
    const files = projects.get(project) ?? new Map<string, Published>();
    projects.set(project, files.set(file, { content, sha256: sha256Of(content), requiresPython }));
  };
  const answer = async (path: string, isHead: boolean, response: ServerResponse): Promise<void> => {
    await index.beforeAnswer(path);
    const body = answerTo(path, projects);
    const type = path.startsWith('/files/') ? 'application/octet-stream' : 'text/html';
    response.writeHead(body === null ? 404 : 200, { 'content-type': type, 'content-length': body?.length ?? 0 });
    response.end(isHead ? '' : (body ?? ''));
  };
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/');
    requests.push(path);
    void answer(path, request.method === 'HEAD', response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const index: TestIndex = {
    url: `http://127.0.0.1:${port}/simple/`,
    requests,
    publish: (wheel) => add(wheel.name, wheelName(wheel), wheelOf(wheel), wheel.requiresPython ?? null),
    add: ({ project, file, content }) => add(project, file, content, null),
    beforeAnswer: () => Promise.resolve(),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  for (const wheel of wheels) index.publish(wheel);
  return index;
}

function answerTo(path: string, projects: ReadonlyMap<string, ReadonlyMap<string, Published>>): Buffer | null {
  const [, project = '', file] = /^\/(?:simple|files)\/([^/]+)\/([^/]+)?$/.exec(path) ?? [];
  const files = projects.get(project);
  if (files === undefined) return null;
  if (path.startsWith('/files/')) return files.get(file ?? '')?.content ?? null;
  const links = [...files].map(([name, { sha256, requiresPython }]) => {
    const python = requiresPython === null ? '' : ` data-requires-python="${requiresPython.replace('>', '&gt;')}"`;
    return `<a href="/files/${project}/${name}#sha256=${sha256}"${python}>${name}</a>`;
  });
  return Buffer.from(`<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`);
}

const distributionOf = ({ name, version }: TestWheel): string => `${name.replaceAll('-', '_')}-${version}`;
const wheelName = (wheel: TestWheel): string => `${distributionOf(wheel)}-py3-none-any.whl`;

/** A wheel is a zip archive with a description (https://packaging.python.org/en/latest/specifications/binary-distribution-format/). */
export function wheelOf(wheel: TestWheel): Buffer {
  const { name, version, files, requires = [], requiresPython, scripts = {} } = wheel;
  const info = `${distributionOf(wheel)}.dist-info`;
  const headers = [
    'Metadata-Version: 2.1',
    `Name: ${name}`,
    `Version: ${version}`,
    ...requires.map((each) => `Requires-Dist: ${each}`),
    ...(requiresPython === undefined ? [] : [`Requires-Python: ${requiresPython}`]),
  ];
  const programs = Object.entries(scripts).map(([program, entry]) => `${program} = ${entry}`);
  const members = {
    ...files,
    [`${info}/METADATA`]: `${headers.join('\n')}\n`,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    ...(programs.length > 0 && { [`${info}/entry_points.txt`]: `[console_scripts]\n${programs.join('\n')}\n` }),
  };
  const record = [...Object.keys(members), `${info}/RECORD`].map((path) => `${path},,`).join('\n');
  return zipOf({ ...members, [`${info}/RECORD`]: `${record}\n` });
}

/** A zip archive without compression. */
export function zipOf(members: Readonly<Record<string, string>>): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [path, text] of Object.entries(members)) {
    const [name, content] = [Buffer.from(path), Buffer.from(text)];
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(20, 0);
    // 1 January 1980, the first day that a zip archive knows.
    shared.writeUInt16LE(0x21, 8);
    shared.writeUInt32LE(crc32(content), 10);
    shared.writeUInt32LE(content.length, 14);
    shared.writeUInt32LE(content.length, 18);
    shared.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004', 'latin1'), shared, name, content]);
    const more = Buffer.alloc(14);
    more.writeUInt32LE((0o100644 << 16) >>> 0, 6);
    more.writeUInt32LE(offset, 10);
    central.push(Buffer.from('PK\u0001\u0002\u0014\u0003', 'latin1'), shared, more, name);
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006', 0, 'latin1');
  end.writeUInt16LE(locals.length, 8);
  end.writeUInt16LE(locals.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

/** The checksum of zip archives. Node 20 has none. */
function crc32(content: Buffer): number {
  let crc = 0xffff_ffff;
  for (const byte of content) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ ((crc & 1) === 1 ? 0xedb8_8320 : 0);
  }
  return (crc ^ 0xffff_ffff) >>> 0;
}
