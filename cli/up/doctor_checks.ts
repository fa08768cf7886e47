import { statSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_CONTROL_PORT, DEFAULT_PROXY_PORT, parseSettings, SETTINGS } from '../../shared/model/settings.ts';
import { programOfLogin } from '../../shared/model/connector.ts';
import { type AnchorWay, type AuditAnchors, auditAnchors } from '../../shared/wire/audit_heads.ts';
import { MAX_CALL_SECONDS } from '../../shared/wire/channel.ts';
import type { ConnectorSummary } from '../../shared/wire/connectors/connectors.ts';
import { listAllBindings } from '../bindings/find_binding.ts';
import { CLIENTS, probeClient, type Client, type TrustOutcome } from '../launch/client_trust.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError } from '../exit_codes.ts';
import { LOG_NAMES, logPath } from './log_files.ts';
import { fullDiskText, modeText } from './home.ts';
import { connectorsWithSpecs, findLimitedRecords } from '../bindings/limited_bindings.ts';
import { fetchSources } from '../bindings/fetch_sources.ts';
import { findMissingSecrets } from '../bindings/missing_secrets.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import { knownPlaceholders } from '../launch/screen_environment.ts';
import { searchCredentials, withoutPlaceholders, type SearchContext } from '../seal/seal_found.ts';
import { loadServices } from '../seal/services.ts';
import { openSession } from '../launch/session_access.ts';
import { askControl, askSidecar, type Asked, type ControlHealth, type SidecarHealth } from './status_command.ts';
import { requireFreePort } from './up_programs.ts';
import type { Finding } from './finding.ts';
import { proxyFindings } from './proxy_findings.ts';
import { keyFindings } from '../vault/key_findings.ts';
import { certificateFindings } from './certificate_findings.ts';
import { type KnownCertificate, listClientCertificates, withSecrets } from '../certificates/client_certificates.ts';
import { sourceFindings } from './source_findings.ts';
import { readUpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { borrowFindings } from '../borrow/borrow_findings.ts';
import { engineFinding } from './engine_finding.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { namespaceRightsAt } from '../../sandbox/engine/namespace_rights.ts';
import { sessionEnvironment } from '../../sandbox/launch/session_environment.ts';

/** Every check of `svc doctor`. A check comes after those that it depends on. */
export async function runChecks(call: Call, home: string): Promise<readonly Finding[]> {
  const findings = [...settingFindings(call.context.env), ...homeFindings(home, process.getuid?.())];
  findings.push(...keyFindings(home, call.context.env));
  if (parseSettings(call.context.env).ok) {
    const [control, sidecar] = await Promise.all([askControl(call), askSidecar(call)]);
    findings.push(...controlFindings(control, call.context), ...sidecarFindings(sidecar, call.context));
    if (control.ok) {
      findings.push(...(await anchorFindings(call)), ...(await bindingFindings(call)));
      findings.push(...sourceFindings(await fetchSources(controlClient(call.context, call.options))));
      findings.push(...certificateFindings(await knownCertificates(call), call.context.now()));
    }
    if (sidecar.ok) findings.push(...(await clientFindings(call)), ...(await borrowFindings(call)));
    if (!control.ok && !sidecar.ok) findings.push(...(await portFindings()));
    findings.push(...(await proxyFindings(call, sidecar)));
  }
  const machine = { kernelRelease: release(), rightsAt: namespaceRightsAt };
  findings.push(await engineFinding(await openEngine(call.context.env), machine));
  findings.push(...(await credentialFindings(call.context, await placeholdersIfKnown(call))));
  return findings;
}

/** The inputs of the checks. */
type Versioned = Pick<CliContext, 'version' | 'now'>;

const KNOWN_ELSEWHERE = ['SVC_SESSION_ID', 'SVC_URL', 'SVC_TOKEN', 'SVC_TEST_INSTALL'];

/** Reports invalid values, and SVC_ variables that are not settings. */
export function settingFindings(env: CliContext['env']): readonly Finding[] {
  const check = 'settings';
  const parsed = parseSettings(env);
  const proxy = readUpstreamProxy(env);
  const problems = parsed.ok ? [] : parsed.error.map(({ message }) => message);
  const bad = [...problems, ...(proxy.ok ? [] : [proxy.error])].map((text): Finding => ({
    check,
    level: 'problem',
    text,
  }));
  const known = new Set([...SETTINGS.map((setting) => setting.name), ...KNOWN_ELSEWHERE]);
  const unknown = Object.keys(env)
    .filter((name) => name.startsWith('SVC_') && !known.has(name))
    .map((name) => {
      const near = nearMatch(name, [...known]);
      const fix = near === null ? 'unset it' : `did you mean ${near}?`;
      return { check, level: 'warning' as const, text: `${name} is set but is not a setting`, fix };
    });
  const findings = [...bad, ...unknown];
  return findings.length > 0
    ? findings
    : [{ check, level: 'ok', text: 'every SVC_ variable in the environment is a known setting' }];
}

const PRIVATE_FILES = [
  'local.key',
  'vault.key',
  'vault.key.change',
  'control.db',
  join('sidecar', 'identity.json'),
  join('sidecar', 'host.token'),
];

/** Checks that only the owner can read the state directory and the keys in it. */
export function homeFindings(home: string, uid: number | undefined): readonly Finding[] {
  const found = statSync(home, { throwIfNoEntry: false });
  if (found === undefined) {
    return [
      { check: 'state', level: 'problem', text: `${home} does not exist`, fix: 'npm start (or svc up) creates it' },
    ];
  }
  const logs = LOG_NAMES.map((name) => logPath(home, name));
  const paths = [home, ...PRIVATE_FILES.map((name) => join(home, name)), ...logs];
  const findings = [...diskFindings(home), ...paths.flatMap((path) => fileFindings(path, uid))];
  return findings.length > 0 ? findings : [{ check: 'state', level: 'ok', text: `${home} and its keys are private` }];
}

function diskFindings(home: string): readonly Finding[] {
  const text = fullDiskText(home);
  const fix = 'free some space; until then nothing can be stored, and no audit event';
  return text === null ? [] : [{ check: 'state', level: 'problem', text, fix }];
}

function fileFindings(path: string, uid: number | undefined): readonly Finding[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  const check = 'state';
  if (uid !== undefined && stats.uid !== uid) {
    const fix = `chown ${uid} ${path}, if you trust its content`;
    return [{ check, level: 'problem', text: `${path} belongs to user ${stats.uid}`, fix }];
  }
  if ((stats.mode & 0o077) === 0) return [];
  const wanted = stats.isDirectory() ? '700' : '600';
  const text = `${path} can be read by other users (mode ${modeText(stats)})`;
  return [{ check, level: 'problem', text, fix: `chmod ${wanted} ${path}; if someone may have read it, replace it` }];
}

const SKEW_WARNING_SECONDS = 10;

/** Checks that the control plane answers, has this version, and has the same time. */
export function controlFindings(control: Asked<ControlHealth>, context: Versioned): readonly Finding[] {
  const check = 'control plane';
  if (!control.ok) return [{ check, level: 'problem', text: control.problem, fix: 'npm start, or svc up' }];
  const health = control.value;
  const there: Finding =
    health.status === 'ok'
      ? { check, level: 'ok', text: `answers, version ${health.version}` }
      : {
          check,
          level: 'problem',
          text: 'reports that its database is unavailable',
          fix: 'see logs/control.log',
        };
  return [there, ...versionFindings(check, health.version, context), clockFinding(health.time, context.now())];
}

function versionFindings(check: string, version: string, context: Versioned): readonly Finding[] {
  if (version === context.version) return [];
  const text = `has version ${version}, but this svc has ${context.version}`;
  return [{ check, level: 'warning', text, fix: 'stop svc and start it again from this checkout' }];
}

function clockFinding(time: string, now: number): Finding {
  const check = 'clock';
  const skewSeconds = Math.round(Math.abs(Date.parse(time) - now) / 1000);
  if (skewSeconds <= SKEW_WARNING_SECONDS) return { check, level: 'ok', text: "matches the control plane's" };
  const text = `differs from the control plane's by ${skewSeconds} s (at most ${MAX_CALL_SECONDS} s are tolerated)`;
  return {
    check,
    level: skewSeconds > MAX_CALL_SECONDS ? 'problem' : 'warning',
    text,
    fix: 'synchronise both clocks with NTP',
  };
}

/** Checks that the sidecar answers and has a policy, a channel and room for audit events. */
export function sidecarFindings(sidecar: Asked<SidecarHealth>, context: Versioned): readonly Finding[] {
  const check = 'sidecar';
  if (!sidecar.ok) return [{ check, level: 'problem', text: sidecar.problem, fix: 'npm start, or svc up' }];
  const { status, version, snapshot, spool, channel } = sidecar.value;
  const findings: Finding[] = [...versionFindings(check, version, context)];
  if (channel.state !== 'up') {
    const why = channel.last_error === null ? '' : `: ${channel.last_error.message}`;
    findings.push({
      check,
      level: 'problem',
      text: `its channel to the control plane is ${channel.state}${why}`,
      fix: 'see logs/sidecar.log',
    });
  }
  if (snapshot === null || snapshot.usable === false) {
    const text = snapshot === null ? 'has no policy yet' : 'its policy has expired';
    findings.push({
      check,
      level: 'problem',
      text,
      fix: 'every request is refused until the control plane answers again',
    });
  }
  if (spool.accepting === false) {
    const text = `its audit spool is full (${spool.bytes} bytes)`;
    findings.push({
      check,
      level: 'problem',
      text,
      fix: 'free disk space, or raise SVC_MAX_SPOOL_BYTES; events wait for the control plane',
    });
  }
  findings.push(...auditLogFindings(sidecar.value));
  return findings.length > 0
    ? findings
    : [{ check, level: 'ok', text: `${status}, policy version ${snapshot?.version}` }];
}

/** Checks the control plane's audit log against what this machine's sidecar has seen of it. */
function auditLogFindings({ audit_log: log }: SidecarHealth): readonly Finding[] {
  const check = 'audit log';
  if (log === undefined) return [];
  const findings = log.mismatches.map(({ writer, standing, remembered, found, noticed_at: at }): Finding => {
    const now = found === null ? 'it is missing' : `it ends at event ${found.sequence}`;
    const text = `the chain ${writer} was rolled back: event ${remembered.sequence} was acknowledged, but now ${now} (${standing}, noticed ${at})`;
    const fix =
      "its database was changed or restored from a backup: ask the control plane's operator; if that was intended, run svc audit accept";
    return { check, level: 'problem', text, fix };
  });
  if (log.remembers) return findings;
  const text = 'the remembered heads cannot be read';
  const fix = 'restore sidecar/audit_heads.json, or move it away and restart svc';
  return [...findings, { check, level: 'problem', text, fix }];
}

/** Checks that the audit log's heads are published, if the control plane is configured to do so. */
async function anchorFindings(call: Call): Promise<readonly Finding[]> {
  const client = controlClient(call.context, call.options);
  const { anchors } = await client.call('GET', '/v1/audit-events/heads/anchors', auditAnchors);
  return anchors.map((anchor) => anchorFinding(anchor));
}

const ANCHOR_TEXT: { readonly [W in AnchorWay]: string } = {
  webhook: 'posted to SVC_AUDIT_HEADS_URL',
  log: "printed to the control plane's log",
};

/** One failed attempt is only a warning: the next one follows. */
export function anchorFinding(anchor: AuditAnchors['anchors'][number]): Finding {
  const { way, sent_at: sentAt, late, failures, failed_at: failedAt, problem } = anchor;
  const check = 'audit heads';
  const last = sentAt === null ? 'never yet' : `last at ${sentAt}`;
  const text = `${ANCHOR_TEXT[way]}, ${last}`;
  if (failures === 0 && !late) return { check, level: 'ok', text };
  const tries = failures === 0 ? 'not attempted' : `${failures} attempts failed, the last at ${failedAt} (${problem})`;
  const fix =
    "ask the control plane's operator: its log has audit_heads_unsent with the host; until this works, a rollback of the database leaves no trace outside it";
  return { check, level: late ? 'problem' : 'warning', text: `${text}: ${tries}`, fix };
}

/** Reports bindings whose credential is not stored, and bindings that only read because an operation on their host needs an approval. */
async function bindingFindings(call: Call): Promise<readonly Finding[]> {
  const check = 'bindings';
  const client = controlClient(call.context, call.options);
  const bindings = await listAllBindings(client);
  const missing = await findMissingSecrets(client, bindings);
  const findings = missing.map(({ ref, command }): Finding => {
    return {
      check,
      level: 'problem',
      text: `${ref} is bound but not stored: requests that need it get 503`,
      fix: command,
    };
  });
  const stored: readonly Finding[] =
    findings.length > 0
      ? findings
      : [
          {
            check,
            level: 'ok',
            text: bindings.length === 0 ? 'none yet' : `${bindings.length}, each with a stored credential`,
          },
        ];
  const connectors = await connectorsWithSpecs(client);
  const limited = findLimitedRecords(bindings, connectors);
  return [
    ...stored,
    ...limited.map(({ text, commands }): Finding => ({ check, level: 'warning', text, fix: commands })),
    ...connectorFindings(connectors),
  ];
}

async function knownCertificates(call: Call): Promise<readonly KnownCertificate[]> {
  const client = controlClient(call.context, call.options);
  return withSecrets(client, (await listClientCertificates(client)) ?? []);
}

/** Names the connectors without a usable credential: an inactive one changes nothing, an active one refuses its operations. */
export function connectorFindings(
  connectors: readonly Pick<ConnectorSummary, 'owner' | 'fqn' | 'active' | 'credential'>[],
): readonly Finding[] {
  const check = 'connectors';
  const lacking = connectors.filter(({ credential }) => credential.state !== 'ready');
  return lacking.map((connector): Finding => {
    const { owner, fqn, active, credential } = connector;
    const name = owner === 'enterprise' ? `${fqn} of the enterprise` : fqn;
    const fix = credentialFix(connector);
    if (!active) {
      const text = `${name} is inactive: it has no credential yet, so it changes nothing`;
      return { check, level: 'warning', text, fix };
    }
    const text = `${name} has no usable credential (${credential.state.replaceAll('_', ' ')}): its operations are refused`;
    return { check, level: 'problem', text, fix };
  });
}

function credentialFix({ owner, fqn, credential }: Pick<ConnectorSummary, 'owner' | 'fqn' | 'credential'>): string {
  const program = programOfLogin(fqn);
  if (program !== null) return `svc login ${program} --import`;
  const [flag, who] = owner === 'enterprise' ? [' --owner enterprise', '  # an admin'] : ['', ''];
  if (credential.kind !== 'api_key') return `svc connector authorize ${fqn}${flag}${who}`;
  return `svc connector credential set ${fqn}${flag}${who === '' ? '  #' : `${who};`} --secret PATH takes a stored secret`;
}

/** Checks that nothing else uses the ports that svc starts on; only while svc is not running. */
export async function portFindings(
  ports: readonly (readonly [port: number, flag: string])[] = [
    [DEFAULT_CONTROL_PORT, '--control-port'],
    [DEFAULT_PROXY_PORT, '--proxy-port'],
  ],
): Promise<readonly Finding[]> {
  const check = 'ports';
  const findings: Finding[] = [];
  for (const [port, flag] of ports) {
    try {
      await requireFreePort(port, flag);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      findings.push({ check, level: 'problem', text: error.message, fix: error.fixes[0] ?? `svc up ${flag} N` });
    }
  }
  if (findings.length > 0) return findings;
  return [{ check, level: 'ok', text: `${ports.map(([port]) => port).join(' and ')} are free` }];
}

/** None while the control plane does not answer, which other checks report. */
async function placeholdersIfKnown(call: Call): Promise<readonly string[]> {
  try {
    return await knownPlaceholders(call);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [];
  }
}

/** Names the files and variables that hold a credential: an agent that runs as the user can read them. */
export async function credentialFindings(
  context: SearchContext,
  placeholders: readonly string[] = [],
): Promise<readonly Finding[]> {
  const check = 'credentials';
  const searched = await searchCredentials(context, loadServices(context.root));
  const findings = withoutPlaceholders(searched.findings, placeholders);
  if (findings.length === 0) return [{ check, level: 'ok', text: 'none in the environment and the usual files' }];
  return findings.map(({ name, file, service }): Finding => {
    const where = file === null ? `the variable ${name}` : `${file.path}:${file.credential.line} (${name})`;
    const what = service === null ? 'a credential' : `a credential of ${service}`;
    return { check, level: 'warning', text: `${where} holds ${what} in plaintext`, fix: 'svc seal' };
  });
}

/** Makes each installed client call the proxy in a session. */
async function clientFindings(call: Call): Promise<readonly Finding[]> {
  try {
    const opened = await openSession(call, { name: 'svc doctor', ttlSeconds: 300, selfTest: true });
    const env = sessionEnvironment(call.context.env, opened.session);
    const findings: Finding[] = [];
    for (const client of CLIENTS) findings.push(...trustFindings(client, await probeClient(client, env)));
    await opened.end();
    return findings;
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [
      {
        check: 'clients',
        level: 'problem',
        text: `no session could be created: ${error.message}`,
        fix: error.fixes[0] ?? 'see logs/sidecar.log',
      },
    ];
  }
}

const TRUST_TEXT: { readonly [O in TrustOutcome]: string } = {
  trusted: "uses the proxy and trusts the session's CA",
  not_installed: 'is not installed',
  untrusted: "does not trust the session's CA",
  past_the_proxy: 'bypasses the proxy',
  unclear: 'printed no recognisable result',
};

/** The finding for the result of a client's probe. */
export function trustFindings(client: Client, outcome: TrustOutcome): readonly Finding[] {
  if (outcome === 'not_installed') return [];
  const text = TRUST_TEXT[outcome];
  return outcome === 'trusted'
    ? [{ check: client.name, level: 'ok', text }]
    : [{ check: client.name, level: 'warning', text, fix: client.fix }];
}
