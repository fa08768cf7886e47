import { refusal } from '../model/refusal.ts';
import { err } from '../model/result.ts';
import type { SchemeAdapter } from './scheme_adapter.ts';

export const SIGV4_RESIGN: SchemeAdapter<'sigv4-resign'> = {
  placeHeader: () => 'authorization',
  derivedSecrets: () => [],
  presented: () => 'absent',
  write: () => err(refusal('signing_form_unsupported', 'sigv4-resign')),
};
