import { BORROWED_KIND } from '../../shared/model/source_kind.ts';
import type { SourceRecord } from '../../shared/wire/secret_sources.ts';
import type { Finding } from './finding.ts';

const CHECK = 'minted secrets';

/** Reports sources whose provider failed last. Nothing is asked of a provider. */
export function sourceFindings(all: readonly SourceRecord[]): readonly Finding[] {
  const sources = all.filter(({ source }) => source.kind !== BORROWED_KIND);
  if (sources.length === 0) return [];
  const failed = sources.flatMap((source) => failureFinding(source) ?? []);
  if (failed.length > 0) return failed;
  return [{ check: CHECK, level: 'ok', text: `${sources.length}, none with a failure since its last value` }];
}

function failureFinding({ ref, path, owner, minted, failure }: SourceRecord): Finding | null {
  if (failure === null) return null;
  const now =
    minted === null
      ? 'requests that need it get 503'
      : `the value that is held ends at ${minted.until}, and then requests that need it get 503`;
  const flag = owner === 'enterprise' ? ' --owner enterprise' : '';
  return {
    check: CHECK,
    level: minted === null ? 'problem' : 'warning',
    text: `${ref} got no value at ${failure.at}: ${failure.message}; ${now}`,
    fix: `svc secret source test ${path}${flag} asks again; svc secret source add at the same path changes a field or the key`,
  };
}
