import { z } from 'zod';
import { line } from '../../primitives.ts';
import { origin, VALUE_FIELD } from '../fields.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';

const id = z.string().regex(/^[\da-z]{26}$/, 'is not an id of 1Password: give 26 letters and digits, from its URL');

export const ONEPASSWORD_CONNECT = sourceKind('onepassword_connect', {
  title: '1Password Connect',
  lead: 'A field of an item, read from a Connect server every few minutes.',
  ...KEPT,
  keys: ['token'],
  keyHint: 'A token of the Connect server that may read the vault.',
  fields: {
    connect_url: {
      schema: origin('https://connect.example.com').refine(
        (url) => !/\/v1\/?$/.test(url),
        'ends with /v1: leave that out, such as https://connect.example.com',
      ),
      label: 'Address of the Connect server',
      placeholder: 'https://connect.example.com',
    },
    vault_id: { schema: id, label: 'Id of the vault', hint: '26 letters and digits' },
    item_id: { schema: id, label: 'Id of the item', hint: '26 letters and digits' },
    /** The label or the id of the field. */
    field: { ...VALUE_FIELD, schema: line(255).min(1), hint: 'Its label or id in the item' },
    /** The label or the id of the section. */
    section: {
      schema: line(255).min(1).optional(),
      label: 'Section',
      hint: 'If fields of several sections have the same label',
      isRare: true,
    },
  },
});
