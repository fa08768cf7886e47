import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';

const report = z.object({ sharedObjects: z.array(z.string()) });

/** What this Node needs to run where there is no other file: itself and the libraries that it has loaded. */
export interface NodeFiles {
  readonly program: string;
  /** Each by the name that the loader knows it by, and where it is. */
  readonly libraries: readonly { readonly source: string; readonly target: string }[];
  /** The folders of the libraries, where the loader may not look by itself. */
  readonly libraryFolders: readonly string[];
}

export function listNodeFiles(): NodeFiles {
  // Otherwise the report asks for the names of the peers of all connections.
  Object.assign(process.report, { excludeNetwork: true });
  const { sharedObjects } = report.parse(process.report.getReport());
  // The kernel's own object has no path. An addon is a file of this program, which a companion does not load.
  const targets = sharedObjects.filter(
    (path) => path.startsWith('/') && path !== process.execPath && !path.endsWith('.node'),
  );
  return {
    program: process.execPath,
    libraries: targets.map((target) => ({ source: realpathSync(target), target })),
    libraryFolders: [...new Set(targets.map((target) => dirname(target)))],
  };
}
