/** What a service manager starts. */
export interface ServicePlan {
  /** `svc`, or `svc-` and eight digits for a state directory other than the default. */
  readonly name: string;
  readonly home: string;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Never a secret: every user can read a running unit. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Why a plan cannot be written as a unit: a text in it has a line break or another control character. */
export function findUnwritable({ home, command, environment }: ServicePlan): string | null {
  return [home, ...command, ...Object.values(environment)].find((text) => hasControl(text)) ?? null;
}

function hasControl(text: string): boolean {
  return Array.from(text).some((character) => character < ' ');
}

/**
 * A unit of the user's systemd. SIGTERM goes to the supervisor alone, which ends its programs in order and keeps the sessions,
 * so `systemctl restart` does not end agents.
 */
export function systemdUnit({ home, command, environment }: ServicePlan): string {
  return [
    '[Unit]',
    `Description=svc on ${home.replaceAll('%', '%%')}`,
    '',
    '[Service]',
    'Type=simple',
    `ExecStart=${command.map((word) => quoteForSystemd(word)).join(' ')}`,
    ...Object.entries(environment).map(([name, value]) => `Environment=${quoteForSystemd(`${name}=${value}`, false)}`),
    'UMask=0077',
    'Restart=on-failure',
    'RestartSec=2',
    'KillMode=mixed',
    'TimeoutStopSec=40',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
}

/** In ExecStart, `$` begins a variable; in Environment it does not. */
function quoteForSystemd(text: string, hasVariables = true): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%');
  return `"${hasVariables ? escaped.replaceAll('$', '$$$$') : escaped}"`;
}

/** An agent of the user's launchd. It is started again only after a failure. */
export function launchdPlist(plan: ServicePlan): string {
  const { command, environment } = plan;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    '<dict>',
    `  <key>Label</key>${element('string', launchdLabel(plan))}`,
    '  <key>ProgramArguments</key>',
    '  <array>',
    ...command.map((word) => `    ${element('string', word)}`),
    '  </array>',
    '  <key>EnvironmentVariables</key>',
    '  <dict>',
    ...Object.entries(environment).map(([name, value]) => `    ${element('key', name)}${element('string', value)}`),
    '  </dict>',
    '  <key>RunAtLoad</key><true/>',
    '  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>',
    '  <key>Umask</key><integer>63</integer>',
    '  <key>ExitTimeOut</key><integer>40</integer>',
    '</dict>',
    '</plist>',
    '',
  ].join('\n');
}

/** The name of the agent at launchd. */
export function launchdLabel({ name }: Pick<ServicePlan, 'name'>): string {
  return `local.${name}`;
}

function element(name: string, text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<${name}>${escaped}</${name}>`;
}
