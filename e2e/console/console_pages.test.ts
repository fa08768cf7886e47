import { expect, test } from 'vitest';
import { consoleRoutes } from '../answers/every_answer.ts';
import { CONSOLE_FORMS, FORMS_OF_OTHER_TESTS } from './console_forms.ts';
import { CONSOLE_PAGES, NO_PAGES } from './console_pages.ts';
import { HOSTED_FORMS } from './hosted_forms.ts';

test('the walk visits every page of the control plane', () => {
  expect([...Object.keys(CONSOLE_PAGES), ...NO_PAGES].toSorted()).toEqual(consoleRoutes('get').toSorted());
});

test('every form that the control plane accepts is sent without scripts', () => {
  expect([...Object.keys(CONSOLE_FORMS), ...FORMS_OF_OTHER_TESTS, ...HOSTED_FORMS].toSorted()).toEqual(
    consoleRoutes('post').toSorted(),
  );
});
