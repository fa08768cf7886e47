import type { html } from 'hono/html';

/** Markup. Values in an `html` template are escaped. */
export type Html = ReturnType<typeof html>;
/** The content that a template accepts. */
export type Content = Html | string | readonly (Html | string)[];
