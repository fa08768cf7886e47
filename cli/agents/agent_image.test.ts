import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import type { ImageConfig } from '../../sandbox/engine/container_runtime.ts';
import { findOrBuildImage, imageTag } from './agent_image.ts';
import type { Ended } from './agent_npm.ts';
import type { AgentProfile } from './agent_profile.ts';
import { findProfile } from './agent_profiles.ts';
import { sampleImage } from '../../sandbox/engine/testing/sample_image.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = join(root, 'sandbox', 'image');
const profileOf = (name: string): AgentProfile =>
  findProfile({ root, home: '/nonexistent', uid: undefined }, name).profile;
const CLAUDE = profileOf('claude');
const HASHES = CLAUDE.container?.integrity ?? {};
const PACKAGED = 'node_modules/@anthropic-ai/claude-code-linux-x64/claude';
const BASE = 'node:24';
const config = (id: string, labels: ImageConfig['labels'] = {}): ImageConfig => sampleImage({ id, labels });

/** What npm leaves behind: the program, and a list of where everything came from. */
const FETCHED: Readonly<Record<string, string>> = {
  [PACKAGED]: '#!/bin/sh\n',
  'package-lock.json': 'https://name:planted@packages.example.com/',
  'node_modules/.package-lock.json': lockOf({ resolved: 'https://name:planted@packages.example.com/' }),
};

/** npm's list of what it fetched, for Linux on x64; musl or not. */
function lockOf(more: object, hashes: Readonly<Record<string, string>> = HASHES): string {
  const fetchedNames = ['@anthropic-ai/claude-code', '@anthropic-ai/claude-code-linux-x64'];
  const packages = fetchedNames.map((name) => [`node_modules/${name}`, { ...more, integrity: hashes[name] }]);
  return JSON.stringify({ packages: Object.fromEntries(packages) });
}

/** The tag for what differs from the usual. */
function tagOf({
  profile = CLAUDE,
  source = SOURCE,
  ...place
}: { profile?: AgentProfile; source?: string } & Partial<Parameters<typeof imageTag>[1]> = {}): string {
  return imageTag(profile, { base: BASE, uid: '1000', stateHome, ...place }, source);
}

let stateHome: string;
let TAG: string;
let images: Map<string, ImageConfig>;
let probe: string;
let fetched: Readonly<Record<string, string>>;
let fetchedMode: number;
let ended: { npm: Ended; build: Ended; pull: Ended };
let notes: string[];
let builtId: string;
let npmCalls: { readonly args: readonly string[]; readonly folder: string }[];
let dockerCalls: (readonly string[])[];
/** The build folder, as the engine gets it. */
let built: {
  readonly dockerfile: string;
  readonly files: string;
  readonly link: string;
  readonly mode: number;
  readonly programMode: number;
} | null;
let scratch: string;
beforeEach(() => {
  stateHome = mkdtempSync(join(tmpdir(), 'svc-state-'));
  TAG = tagOf();
  images = new Map([[BASE, config('sha256:base')]]);
  builtId = 'sha256:new';
  probe = 'node=v24.1.0\nlibc=glibc\n';
  fetched = FETCHED;
  fetchedMode = 0o755;
  const done = { code: 0, output: '' };
  ended = { npm: done, build: done, pull: done };
  [notes, npmCalls, dockerCalls, built] = [[], [], [], null];
  scratch = mkdtempSync(join(tmpdir(), 'svc-agent-image-'));
});
afterEach(() => {
  rmSync(scratch, { recursive: true, force: true });
  rmSync(stateHome, { recursive: true, force: true });
});

/** As if svc had made the image. */
function haveMade(id: string, labels: Record<string, string>): void {
  images.set(TAG, config(id, labels));
  writeFileSync(join(stateHome, 'agent_images.json'), JSON.stringify({ images: { [TAG]: id } }));
}

const npm = (args: readonly string[], folder: string): Promise<Ended> => {
  if (args[0] === '--version') return Promise.resolve({ code: 0, output: '11.10.0\n' });
  npmCalls.push({ args, folder });
  for (const [path, text] of Object.entries(fetched)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    if (path === PACKAGED) chmodSync(join(folder, path), fetchedMode);
  }
  return Promise.resolve(ended.npm);
};
const docker = (args: readonly string[]): Promise<Ended> => {
  dockerCalls.push(args);
  if (args[0] === 'pull' && ended.pull.code === 0) images.set(args.at(-1) ?? '', config('sha256:fetched'));
  if (args[0] !== 'build') return Promise.resolve(args[0] === 'pull' ? ended.pull : { code: 0, output: '' });
  const tag = args.find((each) => each.startsWith('--tag='))?.slice('--tag='.length) ?? '';
  if (ended.build.code === 0) images.set(tag, config(builtId, { 'svc.base': images.get(BASE)?.id ?? '' }));
  const folder = args.at(-1) ?? '';
  const files = Object.keys(FETCHED).filter((path) => existsSync(join(folder, 'agent', path)));
  built = {
    dockerfile: readFileSync(join(folder, 'Dockerfile'), 'utf8'),
    files: files.join(' '),
    link: readlinkSync(join(folder, 'agent', 'bin', 'claude')),
    mode: statSync(join(folder, 'agent')).mode & 0o777,
    programMode: (statSync(join(folder, 'agent', PACKAGED), { throwIfNoEntry: false })?.mode ?? 0) & 0o7777,
  };
  return Promise.resolve(ended.build);
};

async function find(options: { base?: string; rebuild?: boolean; profile?: AgentProfile } = {}): Promise<string> {
  const call = {
    context: { root, now: () => 0 },
    print: { note: (text: string) => notes.push(text) },
  };
  const runtime = {
    inspectImage: (name: string) => {
      const found = images.get(name);
      return Promise.resolve(
        found === undefined ? err({ reason: 'image_missing', message: 'none', fixes: [] } as const) : ok(found),
      );
    },
    runProbe: () => Promise.resolve(ok(probe)),
  };
  const { tag, id } = await findOrBuildImage(
    call,
    { docker, npm, uid: '1000', runtime },
    { profile: CLAUDE, base: BASE, rebuild: false, stateHome, ...options },
  );
  expect(images.get(tag)?.id).toBe(id);
  return tag;
}
const commands = (): readonly (string | undefined)[] => dockerCalls.map(([command]) => command);

describe('the image of an agent', () => {
  test('is made of the base and the pinned package, by a build without a network that runs nothing of the package', async () => {
    expect(await find()).toBe(TAG);
    const [{ args, folder } = { args: [], folder: '' }] = npmCalls;
    expect(args.slice(0, 2)).toEqual(['install', `@anthropic-ai/claude-code@${CLAUDE.tried}`]);
    expect(args).toEqual(expect.arrayContaining(['--ignore-scripts', '--prefer-offline']));
    expect(args.filter((each) => each.startsWith('--prefix'))).toEqual([]);
    expect(args).toContain('--allow-git=none');
    expect(args).toEqual(expect.arrayContaining(['--os=linux', '--cpu=x64', '--libc=glibc', '--global=false']));
    expect(folder).not.toContain(root);
    const [build = []] = dockerCalls;
    expect(build).toEqual(
      expect.arrayContaining([
        'build',
        '--network=none',
        '--build-arg=BASE=node:24',
        '--build-arg=AGENT_UID=1000',
        `--tag=${TAG}`,
      ]),
    );
    expect(commands()).toEqual(['build']);
    const added = built?.dockerfile.slice(readFileSync(join(SOURCE, 'Dockerfile'), 'utf8').length) ?? '';
    expect(added.split('\n')).toEqual([
      'USER root',
      'COPY agent /opt/svc-agent',
      'ENV PATH=/opt/svc-agent/bin:${PATH}',
      'USER ${AGENT_USER}',
      'LABEL svc.agent=claude svc.base=sha256:base',
      '',
    ]);
    expect(notes[0]).toContain(`making an image with Claude Code ${CLAUDE.tried}`);
    expect(existsSync(folder)).toBe(false);
  });

  test('has the program outside of the folders of the system, for everybody to read, and no list of where it came from', async () => {
    await find();
    expect(built).toMatchObject({ link: `../${PACKAGED}`, files: PACKAGED, mode: 0o755 });
  });

  test('is fetched for the libc of the base', async () => {
    probe = 'node=v22.0.0\n';
    fetched = { ...FETCHED, 'node_modules/@anthropic-ai/claude-code-linux-x64-musl/claude': '' };
    await find();
    expect(npmCalls[0]?.args).toContain('--libc=musl');
    expect(built?.link).toBe('../node_modules/@anthropic-ai/claude-code-linux-x64-musl/claude');
  });

  test('is used again, also when its base is not there any more, and without npm', async () => {
    haveMade('sha256:made', { 'svc.base': 'sha256:base' });
    expect(await find()).toBe(TAG);
    images.delete(BASE);
    expect(await find()).toBe(TAG);
    expect([npmCalls, dockerCalls, notes]).toEqual([[], [], []]);
  });

  test.each([
    ['the base has changed', { 'svc.base': 'sha256:older' }, false],
    ['a person asks for it', { 'svc.base': 'sha256:base' }, true],
  ])('is rebuilt if %s, and the old one is removed', async (_why, labels, rebuild) => {
    haveMade('sha256:old', labels);
    expect(await find({ rebuild })).toBe(TAG);
    expect(commands()).toEqual([...(rebuild ? ['pull'] : []), 'build', 'image']);
    expect(dockerCalls.at(-1)).toEqual(['image', 'rm', '--', 'sha256:old']);
  });

  test('is not one that somebody else made, whatever its tag and its labels are', async () => {
    images.set(TAG, config('sha256:foreign', { 'svc.base': 'sha256:base' }));
    expect(await find()).toBe(TAG);
    expect(commands()).toContain('build');
    dockerCalls = [];
    expect(await find()).toBe(TAG);
    expect(dockerCalls).toEqual([]);
    images.set(TAG, config('sha256:foreign', { 'svc.base': 'sha256:base' }));
    await find();
    expect(commands()).toContain('build');
  });

  test('is made of nothing old if a person wants it anew, apart from a base that cannot be fetched', async () => {
    await find({ rebuild: true });
    expect(dockerCalls.map(([command, ...rest]) => [command, rest.includes('--no-cache')])).toEqual([
      ['pull', false],
      ['build', true],
    ]);
    expect(npmCalls[0]?.args).not.toContain('--prefer-offline');
    ended.pull = { code: 1, output: 'no such host\n' };
    await find({ rebuild: true });
    expect(notes.join('\n')).toContain('it could not be fetched: the one that is here is used');
  });

  test('is not removed if the build makes the same one again', async () => {
    builtId = 'sha256:old';
    haveMade('sha256:old', { 'svc.base': 'sha256:base' });
    expect(await find({ rebuild: true })).toBe(TAG);
    expect(commands()).toEqual(['pull', 'build']);
  });

  test('is another one for another version, base, user, state directory, command or package', () => {
    const other = (changes: Partial<AgentProfile>): string => tagOf({ profile: { ...CLAUDE, ...changes } });
    const tags = [
      TAG,
      tagOf({ base: 'team/node:24' }),
      tagOf({ uid: '1001' }),
      tagOf({ uid: null }),
      tagOf({ stateHome: scratch }),
      tagOf({ source: join(root, 'sandbox', 'image', 'mcp') }),
      other({ tried: '9.9.9' }),
      other({ command: 'other' }),
      other({ container: { package: 'other', variables: {}, files: [] } }),
    ];
    expect(new Set(tags).size).toBe(tags.length);
    expect(tagOf()).toBe(TAG);
    expect(TAG).toMatch(/^svc-agent\/claude:\d+\.\d+\.\d+-[0-9a-f]{16}$/);
  });

  test('needs its base: it is fetched, or the engine says why not', async () => {
    expect(await find({ base: 'team/node' })).toMatch(/^svc-agent\/claude:/);
    expect(commands()).toEqual(['pull', 'build']);
    expect(notes.join('\n')).toContain('the engine has no image team/node: fetching it');
    ended.pull = { code: 1, output: 'first\nno such host\n' };
    await expect(find({ base: 'team/other' })).rejects.toMatchObject({
      message: 'the base image team/other could not be fetched',
      fixes: ['first', 'no such host', expect.stringContaining('--base IMAGE')],
    });
  });

  test.each([
    ['', 'no Node'],
    ['node=v20.11.0\n', 'Node 20'],
  ])('is not built from a base with %j', async (said, has) => {
    probe = said;
    await expect(find()).rejects.toMatchObject({
      message: `the base image ${BASE} has ${has}, and agents need Node 22 or newer`,
    });
    expect([npmCalls, dockerCalls]).toEqual([[], []]);
  });

  test.each([
    ['npm fails', 'npm'],
    ['the build fails', 'build'],
  ] as const)('does not exist if %s, and the reason is shown', async (_what, which) => {
    ended[which] = { code: 7, output: `${'more\n'.repeat(20)}the \u001b[31mreason\n` };
    const failed = find();
    await expect(failed).rejects.toMatchObject({ message: expect.stringContaining('ended with 7') });
    await expect(failed).rejects.toMatchObject({ fixes: expect.arrayContaining(['the \\x1b[31mreason']) });
    expect(existsSync(npmCalls[0]?.folder ?? '')).toBe(false);
  });

  test('is not made from a package without the program, or for an agent that is not from npm', async () => {
    fetched = { 'node_modules/.package-lock.json': lockOf({}) };
    await expect(find()).rejects.toMatchObject({ message: expect.stringContaining('has no program') });
    await expect(find({ profile: profileOf('aider') })).rejects.toMatchObject({
      message: 'svc does not know how to put Aider into an image',
      fixes: ['With an image of your own that has it: svc launch --image IMAGE aider'],
    });
    expect(dockerCalls).toEqual([]);
  });

  test.each(Object.keys(HASHES).slice(0, 2))('is not made if another package has the name %s', async (name) => {
    fetched = { ...FETCHED, 'node_modules/.package-lock.json': lockOf({}, { ...HASHES, [name]: 'sha512-other' }) };
    await expect(find()).rejects.toMatchObject({ message: expect.stringContaining(`${name} is not the package`) });
    fetched = { [PACKAGED]: '' };
    await expect(find()).rejects.toMatchObject({ message: expect.stringContaining('is not the package') });
    expect(dockerCalls).toEqual([]);
  });

  test('has no program that runs as another user, and none that others can change', async () => {
    fetchedMode = 0o6777;
    await find();
    expect(built).toMatchObject({ programMode: 0o755 });
  });
});
