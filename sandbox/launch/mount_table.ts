/** A place in a file system, independent of its path in the tree: the device, and the path on it. */
interface DevicePath {
  readonly device: string;
  readonly path: string;
}

interface MountPoint extends DevicePath {
  /** Its path in this machine's tree. */
  readonly at: string;
}

/**
 * The kernel's mounts, from `/proc/self/mountinfo` (proc(5)). A bind mount shows a folder under a second path, and neither
 * path shows that.
 */
export class MountTable {
  readonly #points: readonly MountPoint[];

  constructor(mountinfo: string) {
    this.#points = mountinfo.split('\n').flatMap((line) => {
      const [, , device, root, at] = line.split(' ');
      if (device === undefined || root === undefined || at === undefined) return [];
      return [{ device, path: unescapeField(root), at: unescapeField(at) }];
    });
  }

  /** Every place that a resolved path exposes, including mounts below it. */
  listDevicePaths(path: string): readonly DevicePath[] {
    const below = this.#points.filter(({ at }) => at !== path && isAtOrBelow(at, path));
    const own = this.#findDevicePath(path);
    return own === null ? below : [own, ...below];
  }

  /** The place of a path: on the latest of the mounts with the longest matching path. */
  #findDevicePath(path: string): DevicePath | null {
    let found: MountPoint | null = null;
    for (const point of this.#points) {
      if (isAtOrBelow(path, point.at) && (found === null || point.at.length >= found.at.length)) found = point;
    }
    if (found === null) return null;
    const rest = found.at === '/' ? path : path.slice(found.at.length);
    return { device: found.device, path: joinPath(found.path, rest) };
  }
}

/** Whether one place is the other or inside it. */
export function isWithin(path: DevicePath, folder: DevicePath): boolean {
  return path.device === folder.device && isAtOrBelow(path.path, folder.path);
}

/** Compares whole segments: /a/bc is not below /a/b. */
export function isAtOrBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

function joinPath(root: string, rest: string): string {
  if (rest === '' || rest === '/') return root;
  return root === '/' ? rest : root + rest;
}

/** Spaces, tabs, line ends and backslashes are written in octal. */
function unescapeField(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
