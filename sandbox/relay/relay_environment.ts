import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { sessionLeafKeyHash } from './leaf_key.ts';
import { startRelay, type Relay, type RelayFailureReason } from './relay.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** The facts of a session that its relay needs. */
interface RelaySession {
  readonly proxyUrl: string;
  /** PEM file: the system's roots and, last, the session's CA. */
  readonly caBundlePath: string;
}

/** A relay, and the variables that point clients to it. */
export interface RelayAccess {
  readonly variables: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

/**
 * Opens the relay of a session, for programs that cannot send proxy credentials (design section 9). Its variables make JVMs
 * use and trust it, and contain the flags for Chromium. The JVM's trust store is stored beside the bundle and removed with
 * the session.
 */
export async function openRelay(
  session: RelaySession,
  inherited: Readonly<Record<string, string | undefined>>,
  uid: number | null,
): Promise<Result<RelayAccess, Failure<RelayFailureReason>>> {
  const started = await startRelay({ proxyUrl: session.proxyUrl, uid });
  if (!started.ok) return started;
  const relay = started.value;
  try {
    const bundle = await readFile(session.caBundlePath, 'utf8');
    const [trustStorePath, keyHash] = await Promise.all([
      writeTrustStore(dirname(session.caBundlePath), bundle),
      sessionLeafKeyHash(relay.port, findLastCertificate(bundle)),
    ]);
    const variables = {
      SVC_RELAY_URL: relay.url,
      SVC_CHROMIUM_FLAGS: chromiumFlags(relay, keyHash),
      JAVA_TOOL_OPTIONS: javaToolOptions(relay, trustStorePath, inherited['JAVA_TOOL_OPTIONS'] ?? ''),
    };
    return ok({ variables, close: relay.close });
  } catch (error) {
    await relay.close();
    const why = error instanceof Error ? error.message : String(error);
    return err({ reason: 'relay_unavailable', message: `the relay could not be prepared: ${why}` });
  }
}

async function writeTrustStore(directory: string, bundlePem: string): Promise<string> {
  // Loaded only when needed, because the package is large.
  const { pkcs12TrustStore } = await import('./pkcs12.ts');
  const path = join(directory, 'trust.p12');
  await writeFile(path, pkcs12TrustStore(bundlePem), { mode: 0o600 });
  return path;
}

function findLastCertificate(bundlePem: string): string {
  return bundlePem.slice(bundlePem.lastIndexOf('-----BEGIN CERTIFICATE-----'));
}

/**
 * Chromium reads no certificate authority from its environment. With the flag for the session's public key it accepts the
 * sidecar's certificates and no others, and no trust store changes. The flag works only together with --user-data-dir, which
 * the person or the tool that starts the browser sets.
 */
function chromiumFlags(relay: Pick<Relay, 'url'>, leafKeyHash: string): string {
  return `--proxy-server=${relay.url} --ignore-certificate-errors-spki-list=${leafKeyHash}`;
}

/** The options for JVMs, after the user's own. Loopback is not proxied, as for other clients. */
export function javaToolOptions(relay: Pick<Relay, 'port'>, trustStorePath: string, inherited: string): string {
  const properties = {
    'https.proxyHost': '127.0.0.1',
    'https.proxyPort': String(relay.port),
    'http.proxyHost': '127.0.0.1',
    'http.proxyPort': String(relay.port),
    'http.nonProxyHosts': 'localhost|127.*|[::1]',
    'javax.net.ssl.trustStore': trustStorePath,
    'javax.net.ssl.trustStoreType': 'PKCS12',
  };
  const options = Object.entries(properties).map(([name, value]) => quoteOption(`-D${name}=${value}`));
  return [inherited.trim(), ...options].filter((option) => option !== '').join(' ');
}

/** JVMs split the variable at white space outside single or double quotes. */
function quoteOption(option: string): string {
  if (!/[\s'"]/.test(option)) return option;
  return option.includes("'") ? `"${option}"` : `'${option}'`;
}
