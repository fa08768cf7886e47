import { hostBindingRecord, type HostBindingRecord, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { dropUndefined } from '../command_options.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { inputOf } from './binding_file.ts';

/** Changes these fields of a binding and keeps the others; a field that is `undefined` is removed. Refused if somebody has changed the binding since it was read. */
export function changeBinding(
  client: HttpClient,
  record: HostBindingRecord,
  changes: Partial<ValidHostBinding>,
): Promise<HostBindingRecord> {
  const body = dropUndefined({ ...inputOf(record), ...changes });
  const ifMatch = record.updated_at;
  return client.call('PUT', `/v1/host-bindings/${record.id}`, hostBindingRecord, { body, ifMatch });
}
