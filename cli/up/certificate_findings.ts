import { type KnownCertificate, renewal } from '../certificates/client_certificates.ts';
import type { Finding } from './finding.ts';

const CHECK = 'client certificates';
const NEAR_MS = 30 * 24 * 3600 * 1000;

/** Reports client certificates that are not stored, have expired, or end within 30 days. */
export function certificateFindings(all: readonly KnownCertificate[], now: number): readonly Finding[] {
  if (all.length === 0) return [];
  const findings = all.flatMap((each) => findingOf(each, now) ?? []);
  if (findings.length > 0) return findings;
  return [{ check: CHECK, level: 'ok', text: `${all.length}, each stored, and none known to end within 30 days` }];
}

function findingOf({ record, isStored, expiresAt }: KnownCertificate, now: number): Finding | null {
  const { host, credential_ref: reference } = record;
  const fix = renewal(host);
  if (!isStored) {
    const text = `${reference} of ${host} is not stored: requests there get 503`;
    return { check: CHECK, level: 'problem', text, fix };
  }
  if (expiresAt === null || Date.parse(expiresAt) - now > NEAR_MS) return null;
  if (Date.parse(expiresAt) > now) {
    const text = `${reference} of ${host} ends at ${expiresAt}: then requests there get 503`;
    return { check: CHECK, level: 'warning', text, fix };
  }
  const text = `${reference} of ${host} ended at ${expiresAt}: requests there get 503`;
  return { check: CHECK, level: 'problem', text, fix };
}
