import type { MatrixClient } from './client.ts';

export const REFRESH_COMMAND = 'CLIENTS_MD=write npm run e2e -- e2e/matrix';

const INTRODUCTION = `# Clients

What works behind \`svc run\`, as the end-to-end tests found it: each row is a program nobody here wrote, run by \`svc run\` against an HTTPS service that admits
nothing without its credential. The program has no credential; the service saw the right one on every request. The tests write this page:
\`${REFRESH_COMMAND}\`.

\`svc run\` sets the variables below, and every other that a known client reads its roots from. \`HTTPS_PROXY\` stands for itself, \`HTTP_PROXY\` and
\`NO_PROXY\`, in both spellings.`;

const CLOSING = `## With \`--relay\`

Programs that cannot send credentials to a proxy need \`svc run --relay -- COMMAND\`. It opens a listener on loopback for the session, which takes requests from
processes of your own user and adds the session's credentials ([decision 0010](decisions/0010-relay.md)). JVMs find it by themselves, in \`JAVA_TOOL_OPTIONS\`. For
Chromium, and what drives one (Puppeteer, Playwright), add \`$SVC_CHROMIUM_FLAGS\` to its arguments, beside a \`--user-data-dir\` of its own:

\`\`\`sh
svc run --relay -- sh -c 'chromium --user-data-dir="$(mktemp -d)" $SVC_CHROMIUM_FLAGS https://example.com'
\`\`\`

Other programs that know a proxy but no credentials for it can use \`$SVC_RELAY_URL\` as their proxy; they have to trust the roots in \`$SSL_CERT_FILE\`.`;

const HEADING = ['Client', '`svc run` sets', 'Tried', 'Result'];

/** The page, from its rows as {@link rowOf} makes them. */
export function clientsPage(rows: readonly (readonly string[])[]): string {
  const widths = HEADING.map((_, column) => Math.max(...[HEADING, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = line(widths.map((width) => '-'.repeat(width)));
  return `${[INTRODUCTION, [line(HEADING), rule, ...rows.map(line)].join('\n'), CLOSING].join('\n\n')}\n`;
}

/** A client's row. Only a client whose test went as it says gets one. */
export function rowOf(client: MatrixClient): readonly string[] {
  const variables = client.sets.map((name) => `\`${name}\``).join(', ');
  const sets = client.relay === true ? `${variables} (\`--relay\`)` : variables;
  const result = client.works ? `works ${client.note ?? ''}` : `does not work: ${client.note ?? ''}`;
  return [client.name, sets, client.tried, result.trim()];
}

/** The rows of the page that are there, by the name of their client. */
export function rowsOfPage(page: string): ReadonlyMap<string, readonly string[]> {
  const lines = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| -'));
  const rows = lines.slice(1).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
  return new Map(rows.map((row) => [row[0] ?? '', row]));
}
