import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedRoot } from './cached_root.ts';
import { buildBusyboxRoot } from './busybox_root.ts';
import { buildDebianRoot, describeDebianRoot } from './debian_root.ts';
import type { DockerEngine } from './docker_engine.ts';
import { ROOT } from './program.ts';

/** The folder of the agent programs in the images. */
export const CLIENTS_FOLDER = '/opt/clients';

const IMAGE_FOLDER = join(ROOT, 'sandbox', 'image');

export interface ContainerImages {
  /** Debian with curl, git, python3, node, the AWS CLI and a Go program, and none of our helpers. */
  readonly debianBase: string;
  /** The same with the helpers, built with the project's Dockerfile. */
  readonly debian: string;
  /** That with a JVM, whose trust store takes most of the time that a container needs to start. */
  readonly debianJava: string;
  /** BusyBox and a Go program, laid out as Alpine is. */
  readonly busyboxBase: string;
  readonly busybox: string;
}

/** The images of a test run: made by the first caller, found by the others. */
export async function containerImages(engine: DockerEngine): Promise<ContainerImages> {
  const javaBase = await importOnce(engine, 'debian', await describeDebianRoot(), buildDebianRoot);
  const debianBase = await variantOf(engine, javaBase, 'RUN rm -r /opt/java /usr/local/bin/java');
  const busyboxBase = await importOnce(engine, 'busybox', busyboxRecipe(debianBase), (root) =>
    buildBusyboxRoot(root, engine, debianBase),
  );
  return {
    debianBase,
    busyboxBase,
    debian: await withHelpers(engine, debianBase),
    debianJava: await withHelpers(engine, javaBase),
    busybox: await withHelpers(engine, busyboxBase),
  };
}

/** The image of what `build` puts into a folder; `recipe` is everything that its content depends on. */
async function importOnce(
  engine: DockerEngine,
  name: string,
  recipe: string,
  build: (root: string) => Promise<void>,
): Promise<string> {
  const tag = `svc-e2e-base/${name}:${digest(recipe)}`;
  if (await exists(engine, tag)) return tag;
  const archive = await cachedRoot(tag.replaceAll(/[/:]/g, '-'), build);
  await engine.docker('import', '--change', 'CMD ["/bin/sh"]', archive.path, tag);
  archive.release();
  return tag;
}

/** The image with the helpers, built as the README says. */
async function withHelpers(engine: DockerEngine, base: string): Promise<string> {
  const names = readdirSync(IMAGE_FOLDER, { recursive: true, encoding: 'utf8' }).toSorted();
  const files = names.filter((name) => statSync(join(IMAGE_FOLDER, name)).isFile());
  const content = files.map((name) => `${name}\n${readFileSync(join(IMAGE_FOLDER, name), 'latin1')}`).join('\n');
  const tag = `svc-e2e-agent:${digest(`${base}\n${content}`)}`;
  if (await exists(engine, tag)) return tag;
  await engine.docker(
    'build',
    '--quiet',
    '--network',
    'none',
    '--build-arg',
    `BASE=${base}`,
    '--tag',
    tag,
    IMAGE_FOLDER,
  );
  return tag;
}

/** An image built from another with a few Dockerfile lines. */
export async function variantOf(engine: DockerEngine, base: string, ...lines: string[]): Promise<string> {
  const tag = `svc-e2e-variant:${digest([base, ...lines].join('\n'))}`;
  if (await exists(engine, tag)) return tag;
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-build-'));
  writeFileSync(join(folder, 'Dockerfile'), [`FROM ${base}`, ...lines, ''].join('\n'));
  await engine.docker('build', '--quiet', '--network', 'none', '--tag', tag, folder);
  rmSync(folder, { recursive: true, force: true });
  return tag;
}

async function exists(engine: DockerEngine, tag: string): Promise<boolean> {
  return (await engine.run(['image', 'inspect', '--format', '{{.Id}}', tag])).code === 0;
}

function busyboxRecipe(debianBase: string): string {
  const source = readFileSync(join(import.meta.dirname, 'busybox_root.ts'), 'utf8');
  return `${debianBase}\n${source}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
