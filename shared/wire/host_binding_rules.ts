import type { z } from 'zod';

/** Adds what is wrong between the fields of a binding: scheme parameters, emit mechanism, body. */
export function checkBinding(_value: object, _context: z.core.$RefinementCtx<unknown>): void {}
