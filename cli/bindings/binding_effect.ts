import type { Effect } from '../../shared/model/host_binding.ts';
import { hostBindingRecord, type HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { inputOf } from './binding_file.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** Changes a binding's effect and keeps its other fields. */
export function changeEffect(
  client: HttpClient,
  record: HostBindingRecord,
  effect: Effect,
): Promise<HostBindingRecord> {
  const body = { ...inputOf(record), effect };
  return client.call('PUT', `/v1/host-bindings/${record.id}`, hostBindingRecord, { body });
}
