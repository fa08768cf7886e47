import { statSync } from 'node:fs';
import { normalize } from 'node:path';
import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { type Bubblewrap, openBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { REPLACED_FOLDERS, SYSTEM_FOLDERS } from '../../sandbox/bubblewrap/visible_paths.ts';
import { isAtOrBelow } from '../../sandbox/launch/mount_table.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { CONTAINER_HOME, DEFAULT_RUNTIME_IMAGES, imageFor } from '../servers/container_command.ts';

/** Where a server can run once without network, files and secrets (decision 0099). */
export type TrialPlace =
  | { readonly kind: 'container'; readonly runtime: ContainerRuntime; readonly image: string }
  | { readonly kind: 'sandbox'; readonly bubblewrap: Bubblewrap };

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A container if this machine has an engine with the image of the server's package (`named`) or program (`npx` ...), else
 * bubblewrap. No image is fetched. The error says why there is neither.
 */
export async function findTrialPlace(
  program: string,
  named: string | null,
  env: Environment,
): Promise<Result<TrialPlace, string>> {
  const image = named === null ? imageFor(program, DEFAULT_RUNTIME_IMAGES) : ok(named);
  const runtime = image.ok ? await openEngine(env) : null;
  if (image.ok && runtime?.ok === true) {
    const found = await runtime.value.inspectImage(image.value);
    if (found.ok) return ok({ kind: 'container', runtime: runtime.value, image: found.value.id });
  }
  const found = openBubblewrap(env['PATH'] ?? '');
  return found.ok ? ok({ kind: 'sandbox', bubblewrap: found.value }) : err(found.error.message);
}

/**
 * The folders of this machine that a command names. Many servers end without the folder that they serve, so the trial has an
 * empty one in its place. A part of the system stays what it is.
 */
export function emptyFoldersOf(command: readonly string[]): readonly string[] {
  return command.slice(1).filter((word) => {
    if (!word.startsWith('/') || word !== normalize(word) || word.includes(':') || isOfPlace(word)) return false;
    return statSync(word, { throwIfNoEntry: false })?.isDirectory() === true;
  });
}

const OF_PLACE = [...SYSTEM_FOLDERS, ...REPLACED_FOLDERS, CONTAINER_HOME];

function isOfPlace(path: string): boolean {
  const isPart = OF_PLACE.some((folder) => isAtOrBelow(path, folder) || isAtOrBelow(folder, path));
  return isPart || isAtOrBelow('/tmp', path);
}
