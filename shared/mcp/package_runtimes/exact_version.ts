import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import type { NotInstallable } from '../install/plan.ts';
import type { PlanBuilder } from '../install/plan_builder.ts';
import type { PackageInEntry } from './package_runtime.ts';

/**
 * The exact version of a package: its own or, if it names none (or `latest`), the entry's. A range, a tag, or anything else
 * is refused, because the same program must be installed tomorrow.
 */
export function exactVersion(
  { entry, package: { version } }: PackageInEntry,
  inIdentifier: string | null,
  isExact: (version: string) => boolean,
  builder: PlanBuilder,
): Result<string, NotInstallable> {
  const own = inIdentifier ?? version;
  if (own !== null && own !== 'latest') {
    if (isExact(own)) return ok(own);
    return refuseUnpinned(`Its package names the version ${quoteWord(own)}, which is not one exact release.`);
  }
  // A version that is not a release ("0.0.1-seed") was made up by a registry, not by the publisher.
  if (entry.version === null || entry.version.includes('-') || !isExact(entry.version)) {
    return refuseUnpinned(
      own === null ? 'Its package names no version.' : 'Its package names no version but "latest".',
    );
  }
  builder.warn(
    'version_from_entry',
    `the package names no exact version: the entry's ${quoteWord(entry.version)} is taken`,
  );
  return ok(entry.version);
}

function refuseUnpinned(problem: string): Result<never, NotInstallable> {
  const message = `${problem} Add the server by hand with the version that you mean.`;
  return err({ reason: 'unpinned_version', message });
}
