import type { KmsKey } from '../../../shared/model/kms_key.ts';
import { awsKms } from './aws_kms.ts';
import type { KmsOptions } from './call_kms.ts';
import { googleKms } from './google_kms.ts';
import type { Kms } from './kms.ts';

const CLOUDS: { readonly [C in KmsKey['cloud']]: (options: KmsOptions) => Kms } = { aws: awsKms, google: googleKms };

/** The service that has a key, by the key's name. The credentials file is read at each call, so that it can be replaced. */
export function cloudKms(options: KmsOptions): Kms {
  return {
    wrap: (call, plain) => CLOUDS[call.key.cloud](options).wrap(call, plain),
    unwrap: (call, wrapped) => CLOUDS[call.key.cloud](options).unwrap(call, wrapped),
  };
}
