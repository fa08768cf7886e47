import { BORROWED_KIND } from '../../../model/source_kind.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';

/** Which program gives the value, and for which hosts, is kept on each machine, with the consent given there. */
export const BORROWED = sourceKind(BORROWED_KIND, {
  title: 'A program on each machine',
  lead: 'A program on the machine of a developer gives the value, by consent there. It is not in the control plane.',
  ...KEPT,
  runs: 'machine',
  value: 'token',
  keys: [],
  keyHint: '',
  fields: {},
});
