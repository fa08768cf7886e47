import type { html } from 'hono/html';

/** Markup. What is put into a template of `html` is escaped. */
export type Html = ReturnType<typeof html>;
/** What a template takes as content. */
export type Content = Html | string | readonly (Html | string)[];
