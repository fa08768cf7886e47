import type { MatrixClient } from './client.ts';

export const REFRESH_COMMAND = 'SVC_TEST_FULL=1 CLIENTS_MD=write npm run e2e -- e2e/matrix';

/** The clients that every run of the tests also tries where svc has an upstream proxy; a full run tries all. */
export const BEHIND_A_PROXY: readonly string[] = ['curl', 'gRPC for Node (@grpc/grpc-js)', 'h2load'];

const INTRODUCTION = `# Clients

This page lists which clients work behind \`svc run\`. In each row, the end-to-end tests run a third-party program by \`svc run\` against an HTTPS service that
requires a credential. The program has no credential, and the service receives the right one with every request. \`npm test\` runs one of
those that are alike, with smaller files, and \`npm run test:full\` all. The tests write this page:
\`${REFRESH_COMMAND}\`.

\`svc run\` sets the variables below, and every other variable from which a known client reads its root certificates. \`HTTPS_PROXY\` stands for
\`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\`, in upper and lower case.

In rows with HTTP/2, the service speaks nothing else. Where svc itself reaches the services through a [company proxy](guides/company_proxy.md) with a
password (squid, tinyproxy), \`npm test\` tries these again through tinyproxy, and \`npm run test:full\` every row through both: ${BEHIND_A_PROXY.join('; ')}.

Google's clients on npm (\`google-gax\` and the packages \`@google-cloud/*\` on it) call with \`@grpc/grpc-js\`, which has a row. They have no row of their own, because they would add 60
packages to every installation of the tests. Tried by hand on 26 November 2026, \`IamClient\` of google-gax 6.17 works with a bound host and a client object without a token.`;

const CLOSING = `## With \`--relay\`

Programs that cannot send credentials to a proxy need \`svc run --relay -- COMMAND\`. It opens a listener on loopback for the session, which accepts requests from
processes of your own user and adds the session's credentials ([decision 0010](decisions/0010-relay.md)). JVMs find it by themselves, in \`JAVA_TOOL_OPTIONS\`. For
Chromium, also with Puppeteer or Playwright, add \`$SVC_CHROMIUM_FLAGS\` to its arguments, together with its own \`--user-data-dir\`:

\`\`\`sh
svc run --relay -- sh -c 'chromium --user-data-dir="$(mktemp -d)" $SVC_CHROMIUM_FLAGS https://example.com'
\`\`\`

Other programs that support a proxy without credentials can use \`$SVC_RELAY_URL\` as their proxy. They have to trust the roots in \`$SSL_CERT_FILE\`.`;

const HEADING = ['Client', '`svc run` sets', 'Tried', 'Result'];

/** Renders the page from rows of {@link rowOf}. */
export function clientsPage(rows: readonly (readonly string[])[]): string {
  const widths = HEADING.map((_, column) => Math.max(...[HEADING, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = line(widths.map((width) => '-'.repeat(width)));
  return `${[INTRODUCTION, [line(HEADING), rule, ...rows.map(line)].join('\n'), CLOSING].join('\n\n')}\n`;
}

/** A client's row. Only a client whose test passed gets one. */
export function rowOf(client: MatrixClient): readonly string[] {
  const variables = client.sets.map((name) => `\`${name}\``).join(', ');
  const sets = client.relay === true ? `${variables} (\`--relay\`)` : variables;
  const result = client.works ? `works ${client.note ?? ''}` : `does not work: ${client.note ?? ''}`;
  return [client.name, sets, client.tried, result.trim()];
}

/** The page's existing rows, by client name. */
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
