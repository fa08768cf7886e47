import type { Secret } from '../../../shared/model/secret.ts';
import type { KeyCheck } from './source_port.ts';

/** AWS issues secret access keys of 40 characters, and does not promise it; what speaks its protocol elsewhere has others. */
export function awsKeyCheck(key: Secret): KeyCheck {
  const text = key.reveal();
  if (/^[A-Za-z0-9/+]{40}$/.test(text)) return null;
  if (/^(?:AKIA|ASIA)[A-Z0-9]{16}$/.test(text)) {
    return problem('it is an access key id: give the secret access key, which AWS shows beside it');
  }
  if (/^[\x21-\x7e]{1,128}$/.test(text)) return 'unchecked';
  return problem('it is no secret access key: give it alone, as AWS shows it, without spaces');
}

function problem(message: string): KeyCheck {
  return { reason: 'invalid_key', message };
}
