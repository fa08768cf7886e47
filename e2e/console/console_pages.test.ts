import { OpenAPIHono } from '@hono/zod-openapi';
import { expect, test } from 'vitest';
import type { AppEnv } from '../../worker/routes/http/app_env.ts';
import { pageTable } from '../../worker/routes/console/page_table.ts';
import { CONSOLE_FORMS, FORMS_OF_OTHER_TESTS } from './console_forms.ts';
import { CONSOLE_PAGES, NO_PAGES } from './console_pages.ts';
import { HOSTED_FORMS } from './hosted_forms.ts';

const routes = (method: 'get' | 'post') =>
  pageTable(new OpenAPIHono<AppEnv>())
    .filter(([each]) => each === method)
    .map(([, path]) => path);

test('the walk visits every page of the control plane', () => {
  expect([...Object.keys(CONSOLE_PAGES), ...NO_PAGES].toSorted()).toEqual(routes('get').toSorted());
});

test('every form that the control plane accepts is sent without scripts', () => {
  expect([...Object.keys(CONSOLE_FORMS), ...FORMS_OF_OTHER_TESTS, ...HOSTED_FORMS].toSorted()).toEqual(
    routes('post').toSorted(),
  );
});
