import { z } from 'zod';
import { ifMatchHeaders } from '../net/http/if_match.ts';

/** The revision of a thing, made of its content: it differs after each change. A control plane of an earlier version sends none. */
export const revision = z.string().max(64).optional();

const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** The headers of a call that replaces a thing with such a revision. */
export const revisionHeaders = ifMatchHeaders(hash, '9f86d081…, the revision that you read');
