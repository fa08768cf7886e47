/** The changes of one version, as CHANGELOG.md has them. */
export interface VersionChanges {
  readonly version: string;
  readonly text: string;
}

const HEADING = /^## (\d{1,9}\.\d{1,9}\.\d{1,9})\b/;

/** The versions of a changelog, in its order: the newest first. */
export function readChangelog(changelog: string): readonly VersionChanges[] {
  const versions: { version: string; lines: string[] }[] = [];
  for (const line of changelog.split(/\r?\n/)) {
    const version = HEADING.exec(line)?.[1];
    if (version === undefined) versions.at(-1)?.lines.push(line);
    else versions.push({ version, lines: [] });
  }
  return versions.map(({ version, lines }) => ({ version, text: lines.join('\n').trim() }));
}

/** Below zero if the first version is the older one. Both are three numbers. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  const differences = (left ?? []).map((part, index) => part - (right?.[index] ?? 0));
  return differences.find((difference) => difference !== 0) ?? 0;
}

/** What is new since a version. */
export function changesSince(changes: readonly VersionChanges[], version: string): readonly VersionChanges[] {
  return changes.filter((each) => compareVersions(each.version, version) > 0);
}
