import type { Paint } from '../terminal/output.ts';

/** What a person needs to know once everything is running. */
export interface UpFacts {
  readonly version: string;
  readonly controlUrl: string;
  readonly proxyUrl: string;
  readonly home: string;
  /** The command to call svc with. */
  readonly command: string;
  /** ` --home DIR` if it is not the default. */
  readonly homeFlag: string;
  /** False once a credential is stored: the first steps are then left out. */
  readonly isFirst: boolean;
  /** True if `svc up --detach` started it. */
  readonly inBackground: boolean;
  readonly signIn: { readonly url: string; readonly expiresAt: string } | null;
}

/** The first-run guide: where things listen, the sign-in link, and the commands that seal a first credential. */
export function formatGuide(facts: UpFacts, paint: Paint): string {
  const svc = (text: string): string => paint('cyan', `${facts.command}${facts.homeFlag} ${text}`);
  const link =
    facts.signIn === null
      ? []
      : [
          `  web console    ${facts.signIn.url}`,
          `                 (one-time sign-in link, until ${clockTime(facts.signIn.expiresAt)})`,
        ];
  const firstSteps = [
    facts.inBackground ? 'To seal a first credential:' : 'To seal a first credential, in another terminal:',
    '',
    `  ${svc('claude')}       starts Claude Code and asks for its credential; other agents: svc agents`,
    `  ${svc('seal github')}  asks for a token, for git and gh in: svc run -- COMMAND`,
    '',
  ];
  const lines = [
    paint('bold', `svc ${facts.version} is running`),
    '',
    `  control plane  ${facts.controlUrl}`,
    `  proxy          ${facts.proxyUrl}`,
    `  state          ${facts.home}`,
    ...link,
    '',
    ...(facts.isFirst ? firstSteps : []),
    paint('dim', facts.inBackground ? `"${facts.command} down${facts.homeFlag}" stops it.` : 'Ctrl-C stops it.'),
  ];
  return `${lines.join('\n')}\n`;
}

function clockTime(time: string): string {
  return `${time.slice(11, 16)} UTC`;
}
